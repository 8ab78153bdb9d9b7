-- The words in the index, for finding those with a beginning. It reads the index, and stores
-- nothing.
CREATE VIRTUAL TABLE feedhistory_terms USING fts5vocab (feedhistory_search, instance);
