-- +goose Up

-- A feed's whole state is in the column state, as JSON; the others repeat what
-- is asked for, by programs and people.
CREATE TABLE feeds (
	key       BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	url       TEXT    COLLATE "C" NOT NULL UNIQUE,
	long_url  TEXT    COLLATE "C",
	version   BIGINT  NOT NULL,
	title     TEXT    NOT NULL,
	kind      TEXT    NOT NULL,
	verdict   TEXT    NOT NULL,
	entries   BIGINT  NOT NULL,
	deleted   BIGINT  NOT NULL,
	documents BIGINT  NOT NULL,
	polled    TEXT    COLLATE "C" NOT NULL,
	next      TEXT    COLLATE "C" NOT NULL,
	gone      BOOLEAN NOT NULL,
	error     TEXT    NOT NULL,
	state     TEXT    NOT NULL
);
CREATE INDEX feeds_due ON feeds (next) WHERE NOT gone;

-- Partitioned by feed, so that vacuum, and building an index, never have more
-- than a sixteenth of the entries before them. Whatever asks for one feed reads
-- one partition.
CREATE SEQUENCE entries_key;
CREATE TABLE entries (
	key        BIGINT  NOT NULL DEFAULT nextval('entries_key'),
	feed       BIGINT  NOT NULL REFERENCES feeds (key) ON DELETE CASCADE,
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
	time       TEXT    COLLATE "C" NOT NULL
		GENERATED ALWAYS AS (coalesce(nullif(updated, ''), nullif(published, ''), added)) STORED,
	base       TEXT    NOT NULL DEFAULT '',
	weak_id    BOOLEAN NOT NULL DEFAULT false,
	data       TEXT    NOT NULL DEFAULT '',
	UNIQUE (feed, id)
) PARTITION BY HASH (feed);
-- +goose StatementBegin
DO $$ BEGIN
	FOR n IN 0..15 LOOP
		EXECUTE format('CREATE TABLE entries_%s PARTITION OF entries FOR VALUES WITH (MODULUS 16, REMAINDER %s)', n, n);
	END LOOP;
END $$;
-- +goose StatementEnd
CREATE INDEX entries_by_key ON entries (key);
-- A history comes the newest first: so these two grow at their ends.
CREATE INDEX entries_of_feed_by_time ON entries (feed, time DESC, state);
CREATE INDEX entries_by_time ON entries (time DESC);
CREATE INDEX entries_by_change ON entries (feed, change);

CREATE TABLE versions (
	feed       BIGINT  NOT NULL REFERENCES feeds (key) ON DELETE CASCADE,
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
	PRIMARY KEY (feed, id, digest)
);

CREATE TABLE documents (
	key        BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	feed       BIGINT  NOT NULL REFERENCES feeds (key) ON DELETE CASCADE,
	url        TEXT    COLLATE "C" NOT NULL,
	rank_time  TEXT    COLLATE "C" NOT NULL,
	rank_place BIGINT  NOT NULL,
	state      TEXT    NOT NULL,
	UNIQUE (feed, url)
);
CREATE INDEX documents_by_rank ON documents (feed, rank_time, rank_place, url);

CREATE TABLE names (
	feed     BIGINT NOT NULL REFERENCES feeds (key) ON DELETE CASCADE,
	name     TEXT   COLLATE "C" NOT NULL,
	document BIGINT NOT NULL REFERENCES documents (key) ON DELETE CASCADE,
	PRIMARY KEY (feed, name, document)
);
CREATE INDEX names_of_document ON names (document);

-- The words of entries by entries.key, and the entries that are still to be
-- indexed. The text itself is not stored again.
CREATE TABLE search (
	rowid BIGINT PRIMARY KEY,
	words TSVECTOR NOT NULL
);
CREATE INDEX search_words ON search USING gin (words);
CREATE TABLE unindexed (
	key BIGINT PRIMARY KEY
);
