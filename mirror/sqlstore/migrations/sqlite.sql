-- The schema as it is now: a new database gets it at once, and one of an earlier
-- version by the files in sqlite. All names begin with feedhistory_, so that the
-- tables of another program can be in the same database.

CREATE TABLE feedhistory_schema (version INTEGER NOT NULL) STRICT;

-- A feed's whole state is JSON in the column state; the other columns repeat the
-- parts that people and programs query.
CREATE TABLE feedhistory_feeds (
	key       INTEGER PRIMARY KEY,
	url       TEXT    NOT NULL UNIQUE,
	long_url  TEXT,
	title     TEXT    NOT NULL,
	kind      TEXT    NOT NULL,
	verdict   TEXT    NOT NULL,
	entries   INTEGER NOT NULL,
	deleted   INTEGER NOT NULL,
	documents INTEGER NOT NULL,
	error     TEXT    NOT NULL,
	state     TEXT    NOT NULL,
	checksum  INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX feedhistory_feeds_by_url ON feedhistory_feeds (coalesce(long_url, url));

-- The part of a feed's state that every poll changes, in a short row of its own. The
-- column gone is true of an alias, too. Whoever changes a feed locks its row here.
CREATE TABLE feedhistory_polls (
	feed     INTEGER PRIMARY KEY REFERENCES feedhistory_feeds (key) ON DELETE CASCADE,
	version  INTEGER NOT NULL,
	polls    INTEGER NOT NULL,
	polled   TEXT    NOT NULL,
	next     TEXT    NOT NULL,
	gone     INTEGER NOT NULL,
	checksum INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX feedhistory_polls_due ON feedhistory_polls (next) WHERE NOT gone;

-- The columns changed_own and at_own are "=" where the time equals added or updated;
-- changed and at have it in full. A checksum of zero is unknown.
CREATE TABLE feedhistory_entries (
	key         INTEGER PRIMARY KEY,
	feed        INTEGER NOT NULL REFERENCES feedhistory_feeds (key) ON DELETE CASCADE,
	id          TEXT    NOT NULL,
	long_id     TEXT,
	state       TEXT    NOT NULL,
	archived    INTEGER NOT NULL,
	first       INTEGER NOT NULL,
	change      INTEGER NOT NULL,
	added       TEXT    NOT NULL,
	changed_own TEXT    NOT NULL,
	tomb_when   TEXT    NOT NULL,
	tomb_time   TEXT    NOT NULL,
	tomb_place  INTEGER NOT NULL,
	absence     INTEGER NOT NULL,
	at_own      TEXT    NOT NULL,
	rank_time   TEXT    NOT NULL,
	rank_place  INTEGER NOT NULL,
	digest      TEXT    NOT NULL,
	format      TEXT    NOT NULL DEFAULT '',
	title       TEXT    NOT NULL DEFAULT '',
	link        TEXT    NOT NULL DEFAULT '',
	updated     TEXT    NOT NULL DEFAULT '',
	published   TEXT    NOT NULL DEFAULT '',
	base        TEXT    NOT NULL DEFAULT '',
	weak_id     INTEGER NOT NULL DEFAULT 0,
	data        TEXT    NOT NULL DEFAULT '',
	size        INTEGER NOT NULL DEFAULT 0,
	changed     TEXT    AS (CASE changed_own WHEN '=' THEN added ELSE changed_own END) VIRTUAL,
	at          TEXT    AS (CASE at_own WHEN '=' THEN updated ELSE at_own END) VIRTUAL,
	source      TEXT    NOT NULL DEFAULT '',
	time        TEXT    AS (coalesce(nullif(published, ''), nullif(updated, ''), added)) VIRTUAL,
	checksum         INTEGER NOT NULL DEFAULT 0, -- of the columns without the next two's
	copy_checksum    INTEGER NOT NULL DEFAULT 0, -- of at to digest
	content_checksum INTEGER NOT NULL DEFAULT 0, -- of format to size
	UNIQUE (feed, id)
) STRICT;
-- A history arrives newest first, so these two grow at their ends.
CREATE INDEX feedhistory_entries_of_feed_by_time ON feedhistory_entries (feed, time DESC, state);
CREATE INDEX feedhistory_entries_by_time ON feedhistory_entries (time DESC);
CREATE INDEX feedhistory_entries_by_change ON feedhistory_entries (feed, change);

CREATE TABLE feedhistory_versions (
	feed       INTEGER NOT NULL REFERENCES feedhistory_feeds (key) ON DELETE CASCADE,
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
	size       INTEGER NOT NULL DEFAULT 0,
	source     TEXT    NOT NULL DEFAULT '',
	copy_checksum    INTEGER NOT NULL DEFAULT 0,
	content_checksum INTEGER NOT NULL DEFAULT 0,
	PRIMARY KEY (feed, id, digest)
) STRICT;

CREATE TABLE feedhistory_documents (
	key        INTEGER PRIMARY KEY,
	feed       INTEGER NOT NULL REFERENCES feedhistory_feeds (key) ON DELETE CASCADE,
	url        TEXT    NOT NULL,
	rank_time  TEXT    NOT NULL,
	rank_place INTEGER NOT NULL,
	state      TEXT    NOT NULL,
	checksum   INTEGER NOT NULL DEFAULT 0,
	UNIQUE (feed, url)
) STRICT;
CREATE INDEX feedhistory_documents_by_rank ON feedhistory_documents (feed, rank_time, rank_place, url);

CREATE TABLE feedhistory_names (
	feed     INTEGER NOT NULL REFERENCES feedhistory_feeds (key) ON DELETE CASCADE,
	name     TEXT    NOT NULL,
	document INTEGER NOT NULL REFERENCES feedhistory_documents (key) ON DELETE CASCADE,
	PRIMARY KEY (feed, name, document)
) STRICT, WITHOUT ROWID;
CREATE INDEX feedhistory_names_of_document ON feedhistory_names (document);

-- The words of entries by entries.key, and the entries that wait to be indexed. The
-- text itself is not stored again.
CREATE VIRTUAL TABLE feedhistory_search USING fts5 (
	words, content = '', contentless_delete = 1, detail = none, tokenize = 'ascii'
);
-- FTS5 collects the words of a whole batch before it writes them. With its usual
-- megabyte it would write several times, and then merge the parts.
INSERT INTO feedhistory_search (feedhistory_search, rank) VALUES ('hashsize', 4194304);
CREATE TABLE feedhistory_unindexed (
	key INTEGER PRIMARY KEY REFERENCES feedhistory_entries (key) ON DELETE CASCADE
) STRICT;
-- The words in the index, for finding those with a beginning. It reads the index, and stores
-- nothing.
CREATE VIRTUAL TABLE feedhistory_terms USING fts5vocab (feedhistory_search, instance);
