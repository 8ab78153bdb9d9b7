-- +goose Up

-- While a table has few rows, indexes that begin with the same column cost the
-- planner the same, and a prepared plan that took another one than (feed, id) reads
-- all of a feed to find one of its entries. These indexes are partial, by a
-- condition that all rows meet: so only queries that name it can take them, in
-- whatever order they were made, as pg_restore has its own.
DROP INDEX entries_of_feed_by_time;
DROP INDEX entries_by_change;
DROP INDEX documents_by_rank;
CREATE INDEX entries_of_feed_by_time ON entries (feed, time DESC, state) WHERE time >= '';
CREATE INDEX entries_by_change ON entries (feed, change) WHERE change >= 0;
CREATE INDEX documents_by_rank ON documents (feed, rank_time, rank_place, url) WHERE rank_time >= '';

-- The entries of a feed that have one of a list of IDs, each by the index: a plan
-- that was made when a partition had been analyzed without a row would read all of
-- it.
-- +goose StatementBegin
CREATE FUNCTION entries_known(ids TEXT[], of BIGINT) RETURNS SETOF entries
LANGUAGE plpgsql STABLE ROWS 50 SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$ BEGIN
	RETURN QUERY SELECT entry.* FROM unnest(ids) AS wanted
		CROSS JOIN LATERAL (SELECT * FROM entries WHERE id = wanted AND feed = of LIMIT 1) AS entry;
END $$;
-- +goose StatementEnd
