-- What somebody remembers of an entry, which need not be here. The column more is JSON.
CREATE TABLE feedhistory_marks (
	feed     INTEGER NOT NULL REFERENCES feedhistory_feeds (key) ON DELETE CASCADE,
	id       TEXT    NOT NULL,
	long_id  TEXT   ,
	read     TEXT    NOT NULL,
	starred  TEXT    NOT NULL,
	forward  TEXT    NOT NULL,
	backward TEXT    NOT NULL,
	more     TEXT    NOT NULL,
	PRIMARY KEY (feed, id)
) STRICT;
CREATE INDEX feedhistory_marks_starred ON feedhistory_marks (starred) WHERE starred <> '';
CREATE INDEX feedhistory_marks_forward ON feedhistory_marks (forward) WHERE forward <> '';
CREATE INDEX feedhistory_marks_backward ON feedhistory_marks (backward) WHERE backward <> '';
