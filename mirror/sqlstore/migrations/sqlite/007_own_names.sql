-- All names get the prefix feedhistory_, so that the database can have the tables of
-- another program. The column time becomes the time that people see: published, or
-- else updated. Rows get checksums when they are written next.
ALTER TABLE feeds RENAME TO feedhistory_feeds;
ALTER TABLE polls RENAME TO feedhistory_polls;
ALTER TABLE entries RENAME TO feedhistory_entries;
ALTER TABLE versions RENAME TO feedhistory_versions;
ALTER TABLE documents RENAME TO feedhistory_documents;
ALTER TABLE names RENAME TO feedhistory_names;
ALTER TABLE search RENAME TO feedhistory_search;
ALTER TABLE unindexed RENAME TO feedhistory_unindexed;

DROP INDEX feeds_by_url;
DROP INDEX polls_due;
DROP INDEX entries_of_feed_by_time;
DROP INDEX entries_by_time;
DROP INDEX entries_by_change;
DROP INDEX documents_by_rank;
DROP INDEX names_of_document;

ALTER TABLE feedhistory_entries DROP COLUMN time;
ALTER TABLE feedhistory_entries ADD COLUMN time TEXT AS (coalesce(nullif(published, ''), nullif(updated, ''), added)) VIRTUAL;
ALTER TABLE feedhistory_entries ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feedhistory_entries ADD COLUMN copy_checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feedhistory_entries ADD COLUMN content_checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feedhistory_versions ADD COLUMN copy_checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feedhistory_versions ADD COLUMN content_checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feedhistory_feeds ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feedhistory_polls ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feedhistory_documents ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;

CREATE INDEX feedhistory_feeds_by_url ON feedhistory_feeds (coalesce(long_url, url));
CREATE INDEX feedhistory_polls_due ON feedhistory_polls (next) WHERE NOT gone;
CREATE INDEX feedhistory_entries_of_feed_by_time ON feedhistory_entries (feed, time DESC, state);
CREATE INDEX feedhistory_entries_by_time ON feedhistory_entries (time DESC);
CREATE INDEX feedhistory_entries_by_change ON feedhistory_entries (feed, change);
CREATE INDEX feedhistory_documents_by_rank ON feedhistory_documents (feed, rank_time, rank_place, url);
CREATE INDEX feedhistory_names_of_document ON feedhistory_names (document);

-- From here on the version is in feedhistory_schema. An earlier program looks for it in
-- schema_versions, and refuses the database.
CREATE TABLE feedhistory_schema (version INTEGER NOT NULL) STRICT;
INSERT INTO schema_versions (version_id, is_applied) VALUES (7, 1);
