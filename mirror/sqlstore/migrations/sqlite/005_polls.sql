-- +goose Up

-- What each poll changes of a feed, in a row of its own that is short: a poll that
-- brings nothing new does not write the feed's whole state again. The column gone
-- is true of an alias, too. Whoever changes a feed locks its row here.
CREATE TABLE polls (
	feed    INTEGER PRIMARY KEY REFERENCES feeds (key) ON DELETE CASCADE,
	version INTEGER NOT NULL,
	polls   INTEGER NOT NULL,
	polled  TEXT    NOT NULL,
	next    TEXT    NOT NULL,
	gone    INTEGER NOT NULL
) STRICT;
INSERT INTO polls (feed, version, polls, polled, next, gone)
	SELECT key, version, coalesce(json_extract(state, '$.polls'), 0), polled, next, gone FROM feeds;
CREATE INDEX polls_due ON polls (next) WHERE NOT gone;

DROP INDEX feeds_due;
ALTER TABLE feeds DROP COLUMN version;
ALTER TABLE feeds DROP COLUMN polled;
ALTER TABLE feeds DROP COLUMN next;
ALTER TABLE feeds DROP COLUMN gone;
