-- Where a copy comes from, if it is from a feed reader, or another memory of the feed.
ALTER TABLE feedhistory_entries ADD COLUMN source TEXT NOT NULL DEFAULT '';
ALTER TABLE feedhistory_versions ADD COLUMN source TEXT NOT NULL DEFAULT '';
