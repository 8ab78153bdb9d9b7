-- The schema as it is now: a new database gets it at once, and one of an earlier
-- version by the files in postgresql. Everything is in the schema feedhistory, so that
-- the tables of another program can be in the same database.

DO $$ BEGIN
	IF to_regnamespace('feedhistory') IS NULL THEN -- its owner may have made it for us
		CREATE SCHEMA feedhistory;
	END IF;
END $$;

CREATE TABLE feedhistory.schema (version INTEGER NOT NULL);

-- A feed's whole state is JSON in the column state; the other columns repeat the
-- parts that people and programs query.
CREATE TABLE feedhistory.feeds (
	key       BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	url       TEXT    COLLATE "C" NOT NULL UNIQUE,
	long_url  TEXT    COLLATE "C",
	title     TEXT    NOT NULL,
	kind      TEXT    NOT NULL,
	verdict   TEXT    NOT NULL,
	entries   BIGINT  NOT NULL,
	deleted   BIGINT  NOT NULL,
	documents BIGINT  NOT NULL,
	error     TEXT    NOT NULL,
	state     TEXT    NOT NULL,
	checksum  INTEGER NOT NULL DEFAULT 0
);
-- An index takes 2,704 bytes at most.
CREATE INDEX feeds_by_url ON feedhistory.feeds (left(coalesce(long_url, url), 500));

-- The part of a feed's state that every poll changes, in a short row of its own. The
-- column gone is true of an alias, too. Whoever changes a feed locks its row here.
CREATE TABLE feedhistory.polls (
	feed     BIGINT  PRIMARY KEY REFERENCES feedhistory.feeds (key) ON DELETE CASCADE,
	version  BIGINT  NOT NULL,
	polls    BIGINT  NOT NULL,
	polled   TEXT    COLLATE "C" NOT NULL,
	next     TEXT    COLLATE "C" NOT NULL,
	gone     BOOLEAN NOT NULL,
	checksum INTEGER NOT NULL DEFAULT 0
) WITH (fillfactor = 70);
CREATE INDEX polls_due ON feedhistory.polls (next) WHERE NOT gone;

-- Partitioned by feed, so that vacuum, and building an index, never have more than a
-- sixteenth of the entries before them. A query for one feed reads one partition.
CREATE SEQUENCE feedhistory.entries_key;
CREATE TABLE feedhistory.entries (
	key        BIGINT  NOT NULL DEFAULT nextval('feedhistory.entries_key'),
	feed       BIGINT  NOT NULL REFERENCES feedhistory.feeds (key) ON DELETE CASCADE,
	id         TEXT    COLLATE "C" NOT NULL,
	long_id    TEXT    COLLATE "C",
	state      TEXT    COLLATE "C" NOT NULL,
	archived   BOOLEAN NOT NULL,
	first      BIGINT  NOT NULL,
	change     BIGINT  NOT NULL,
	added      TEXT    COLLATE "C" NOT NULL,
	changed    TEXT    COLLATE "C" NOT NULL,
	tomb_when  TEXT    COLLATE "C" NOT NULL,
	tomb_time  TEXT    COLLATE "C" NOT NULL,
	tomb_place BIGINT  NOT NULL,
	absence    BIGINT  NOT NULL,
	at         TEXT    COLLATE "C" NOT NULL,
	rank_time  TEXT    COLLATE "C" NOT NULL,
	rank_place BIGINT  NOT NULL,
	digest     TEXT    COLLATE "C" NOT NULL,
	format     TEXT    COLLATE "C" NOT NULL DEFAULT '',
	title      TEXT    NOT NULL DEFAULT '',
	link       TEXT    NOT NULL DEFAULT '',
	updated    TEXT    COLLATE "C" NOT NULL DEFAULT '',
	published  TEXT    COLLATE "C" NOT NULL DEFAULT '',
	base       TEXT    NOT NULL DEFAULT '',
	weak_id    BOOLEAN NOT NULL DEFAULT false,
	data       TEXT    NOT NULL DEFAULT '',
	size       BIGINT  NOT NULL DEFAULT 0,
	source     TEXT    NOT NULL DEFAULT '',
	time       TEXT    COLLATE "C" NOT NULL
		GENERATED ALWAYS AS (coalesce(nullif(published, ''), nullif(updated, ''), added)) STORED,
	checksum         INTEGER NOT NULL DEFAULT 0, -- of the columns without the next two's
	copy_checksum    INTEGER NOT NULL DEFAULT 0, -- of at to digest
	content_checksum INTEGER NOT NULL DEFAULT 0, -- of format to size
	UNIQUE (feed, id)
) PARTITION BY HASH (feed);
DO $$ BEGIN
	FOR n IN 0..15 LOOP
		EXECUTE format('CREATE TABLE feedhistory.entries_%s PARTITION OF feedhistory.entries FOR VALUES WITH (MODULUS 16, REMAINDER %s)', n, n);
	END LOOP;
END $$;
CREATE INDEX entries_by_key ON feedhistory.entries (key);

-- A history arrives newest first, so the first two grow at their ends. Indexes that
-- begin with the same column cost the planner the same while a table has few rows, and
-- a prepared plan with another one than (feed, id) would read all of a feed to find one
-- entry. So these are partial, by a condition that all rows meet: only queries with
-- that condition can use them.
CREATE INDEX entries_of_feed_by_time ON feedhistory.entries (feed, time DESC, state) WHERE time >= '';
CREATE INDEX entries_by_time ON feedhistory.entries (time DESC);
CREATE INDEX entries_by_change ON feedhistory.entries (feed, change) WHERE change >= 0;

CREATE TABLE feedhistory.versions (
	feed       BIGINT  NOT NULL REFERENCES feedhistory.feeds (key) ON DELETE CASCADE,
	id         TEXT    COLLATE "C" NOT NULL,
	long_id    TEXT    COLLATE "C",
	at         TEXT    COLLATE "C" NOT NULL,
	rank_time  TEXT    COLLATE "C" NOT NULL,
	rank_place BIGINT  NOT NULL,
	digest     TEXT    COLLATE "C" NOT NULL,
	format     TEXT    COLLATE "C" NOT NULL,
	title      TEXT    NOT NULL,
	link       TEXT    NOT NULL,
	updated    TEXT    COLLATE "C" NOT NULL,
	published  TEXT    COLLATE "C" NOT NULL,
	base       TEXT    NOT NULL,
	weak_id    BOOLEAN NOT NULL,
	data       TEXT    NOT NULL,
	size       BIGINT  NOT NULL DEFAULT 0,
	source     TEXT    NOT NULL DEFAULT '',
	copy_checksum    INTEGER NOT NULL DEFAULT 0,
	content_checksum INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (feed, id, digest)
);

CREATE TABLE feedhistory.documents (
	key        BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	feed       BIGINT  NOT NULL REFERENCES feedhistory.feeds (key) ON DELETE CASCADE,
	url        TEXT    COLLATE "C" NOT NULL,
	rank_time  TEXT    COLLATE "C" NOT NULL,
	rank_place BIGINT  NOT NULL,
	state      TEXT    NOT NULL,
	checksum   INTEGER NOT NULL DEFAULT 0,
	UNIQUE (feed, url)
);
CREATE INDEX documents_by_rank ON feedhistory.documents (feed, rank_time, rank_place, url) WHERE rank_time >= '';

CREATE TABLE feedhistory.names (
	feed     BIGINT NOT NULL REFERENCES feedhistory.feeds (key) ON DELETE CASCADE,
	name     TEXT   COLLATE "C" NOT NULL,
	document BIGINT NOT NULL REFERENCES feedhistory.documents (key) ON DELETE CASCADE,
	PRIMARY KEY (feed, name, document)
);
CREATE INDEX names_of_document ON feedhistory.names (document);

-- The words of entries by entries.key, and the entries that wait to be indexed. The
-- text itself is not stored again.
CREATE TABLE feedhistory.search (
	rowid BIGINT PRIMARY KEY,
	words TSVECTOR NOT NULL
);
CREATE INDEX search_words ON feedhistory.search USING gin (words);
CREATE TABLE feedhistory.unindexed (
	key BIGINT PRIMARY KEY
);

-- The entries of a feed with the IDs in a list, each by the index: a plan from when a
-- partition had been analyzed without a row would read all of it.
CREATE FUNCTION feedhistory.entries_known(ids TEXT[], of BIGINT) RETURNS SETOF feedhistory.entries
LANGUAGE plpgsql STABLE ROWS 50 SET enable_seqscan = off SET plan_cache_mode = force_generic_plan AS $$ BEGIN
	RETURN QUERY SELECT entry.* FROM unnest(ids) AS wanted
		CROSS JOIN LATERAL (SELECT * FROM feedhistory.entries WHERE id = wanted AND feed = of LIMIT 1) AS entry;
END $$;
