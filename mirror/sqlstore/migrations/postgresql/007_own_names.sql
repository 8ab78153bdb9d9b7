-- Everything moves into the schema feedhistory, so that the database can have the
-- tables of another program. The column time becomes the time that people see:
-- published, or else updated. Rows get checksums when they are written next.
DO $$ BEGIN
	IF to_regnamespace('feedhistory') IS NULL THEN -- its owner may have made it for us
		CREATE SCHEMA feedhistory;
	END IF;
	FOR n IN 0..15 LOOP
		EXECUTE format('ALTER TABLE entries_%s SET SCHEMA feedhistory', n);
	END LOOP;
END $$;
DROP FUNCTION entries_known;
ALTER TABLE feeds SET SCHEMA feedhistory;
ALTER TABLE polls SET SCHEMA feedhistory;
ALTER TABLE entries SET SCHEMA feedhistory;
ALTER SEQUENCE entries_key SET SCHEMA feedhistory;
ALTER TABLE versions SET SCHEMA feedhistory;
ALTER TABLE documents SET SCHEMA feedhistory;
ALTER TABLE names SET SCHEMA feedhistory;
ALTER TABLE search SET SCHEMA feedhistory;
ALTER TABLE unindexed SET SCHEMA feedhistory;

ALTER TABLE feedhistory.feeds ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feedhistory.polls ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feedhistory.documents ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0;
ALTER TABLE feedhistory.versions
	ADD COLUMN copy_checksum INTEGER NOT NULL DEFAULT 0,
	ADD COLUMN content_checksum INTEGER NOT NULL DEFAULT 0;
-- This rewrites the entries once, and drops the indexes with the column.
DROP INDEX feedhistory.entries_by_change;
ALTER TABLE feedhistory.entries
	DROP COLUMN time,
	ADD COLUMN time TEXT COLLATE "C" NOT NULL
		GENERATED ALWAYS AS (coalesce(nullif(published, ''), nullif(updated, ''), added)) STORED,
	ADD COLUMN checksum INTEGER NOT NULL DEFAULT 0,
	ADD COLUMN copy_checksum INTEGER NOT NULL DEFAULT 0,
	ADD COLUMN content_checksum INTEGER NOT NULL DEFAULT 0;

-- A history arrives newest first, so the first two grow at their ends. Indexes that
-- begin with the same column cost the planner the same while a table has few rows, and
-- a prepared plan with another one than (feed, id) would read all of a feed to find one
-- entry. So these are partial, by a condition that all rows meet: only queries with
-- that condition can use them.
CREATE INDEX entries_of_feed_by_time ON feedhistory.entries (feed, time DESC, state) WHERE time >= '';
CREATE INDEX entries_by_time ON feedhistory.entries (time DESC);
CREATE INDEX entries_by_change ON feedhistory.entries (feed, change) WHERE change >= 0;

-- The entries of a feed with the IDs in a list, each by the index: a plan from when a
-- partition had been analyzed without a row would read all of it.
CREATE FUNCTION feedhistory.entries_known(ids TEXT[], of BIGINT) RETURNS SETOF feedhistory.entries
LANGUAGE plpgsql STABLE ROWS 50 SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$ BEGIN
	RETURN QUERY SELECT entry.* FROM unnest(ids) AS wanted
		CROSS JOIN LATERAL (SELECT * FROM feedhistory.entries WHERE id = wanted AND feed = of LIMIT 1) AS entry;
END $$;

-- From here on the version is in feedhistory.schema. An earlier program looks for it in
-- schema_versions, and refuses the database.
CREATE TABLE feedhistory.schema (version INTEGER NOT NULL);
INSERT INTO schema_versions (version_id, is_applied) VALUES (7, true);
