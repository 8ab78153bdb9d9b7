-- +goose Up

-- A feed's whole state is in the column state, as JSON; the others repeat what
-- is asked for, by programs and people.
CREATE TABLE feeds (
	key       INTEGER PRIMARY KEY,
	url       TEXT    NOT NULL UNIQUE,
	long_url  TEXT,
	version   INTEGER NOT NULL,
	title     TEXT    NOT NULL,
	kind      TEXT    NOT NULL,
	verdict   TEXT    NOT NULL,
	entries   INTEGER NOT NULL,
	deleted   INTEGER NOT NULL,
	documents INTEGER NOT NULL,
	polled    TEXT    NOT NULL,
	next      TEXT    NOT NULL,
	gone      INTEGER NOT NULL,
	error     TEXT    NOT NULL,
	state     TEXT    NOT NULL
) STRICT;
CREATE INDEX feeds_due ON feeds (next) WHERE NOT gone;
CREATE INDEX feeds_by_url ON feeds (coalesce(long_url, url));

CREATE TABLE entries (
	key        INTEGER PRIMARY KEY,
	feed       INTEGER NOT NULL REFERENCES feeds (key) ON DELETE CASCADE,
	id         TEXT    NOT NULL,
	long_id    TEXT,
	state      TEXT    NOT NULL,
	archived   INTEGER NOT NULL,
	first      INTEGER NOT NULL,
	change     INTEGER NOT NULL,
	added      TEXT    NOT NULL,
	changed    TEXT    NOT NULL,
	tomb_when  TEXT    NOT NULL,
	tomb_time  TEXT    NOT NULL,
	tomb_place INTEGER NOT NULL,
	absence    INTEGER NOT NULL,
	at         TEXT    NOT NULL,
	rank_time  TEXT    NOT NULL,
	rank_place INTEGER NOT NULL,
	digest     TEXT    NOT NULL,
	format     TEXT    NOT NULL DEFAULT '',
	title      TEXT    NOT NULL DEFAULT '',
	link       TEXT    NOT NULL DEFAULT '',
	updated    TEXT    NOT NULL DEFAULT '',
	published  TEXT    NOT NULL DEFAULT '',
	time       TEXT    NOT NULL AS (coalesce(nullif(updated, ''), nullif(published, ''), added)) STORED,
	base       TEXT    NOT NULL DEFAULT '',
	weak_id    INTEGER NOT NULL DEFAULT 0,
	data       TEXT    NOT NULL DEFAULT '',
	UNIQUE (feed, id)
) STRICT;
-- A history comes the newest first: so these two grow at their ends.
CREATE INDEX entries_of_feed_by_time ON entries (feed, time DESC, state);
CREATE INDEX entries_by_time ON entries (time DESC);
CREATE INDEX entries_by_change ON entries (feed, change);

CREATE TABLE versions (
	feed       INTEGER NOT NULL REFERENCES feeds (key) ON DELETE CASCADE,
	id         TEXT    NOT NULL,
	long_id    TEXT,
	at         TEXT    NOT NULL,
	rank_time  TEXT    NOT NULL,
	rank_place INTEGER NOT NULL,
	digest     TEXT    NOT NULL,
	format     TEXT    NOT NULL,
	title      TEXT    NOT NULL,
	link       TEXT    NOT NULL,
	updated    TEXT    NOT NULL,
	published  TEXT    NOT NULL,
	base       TEXT    NOT NULL,
	weak_id    INTEGER NOT NULL,
	data       TEXT    NOT NULL,
	PRIMARY KEY (feed, id, digest)
) STRICT;

CREATE TABLE documents (
	key        INTEGER PRIMARY KEY,
	feed       INTEGER NOT NULL REFERENCES feeds (key) ON DELETE CASCADE,
	url        TEXT    NOT NULL,
	rank_time  TEXT    NOT NULL,
	rank_place INTEGER NOT NULL,
	state      TEXT    NOT NULL,
	UNIQUE (feed, url)
) STRICT;
CREATE INDEX documents_by_rank ON documents (feed, rank_time, rank_place, url);

CREATE TABLE names (
	feed     INTEGER NOT NULL REFERENCES feeds (key) ON DELETE CASCADE,
	name     TEXT    NOT NULL,
	document INTEGER NOT NULL REFERENCES documents (key) ON DELETE CASCADE,
	PRIMARY KEY (feed, name, document)
) STRICT, WITHOUT ROWID;
CREATE INDEX names_of_document ON names (document);

-- The words of entries by entries.key, and the entries that are still to be
-- indexed. The text itself is not stored again.
CREATE VIRTUAL TABLE search USING fts5 (
	words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);
CREATE TABLE unindexed (
	key INTEGER PRIMARY KEY REFERENCES entries (key) ON DELETE CASCADE
) STRICT;
