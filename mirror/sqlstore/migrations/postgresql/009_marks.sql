-- What somebody remembers of an entry, which need not be here. The column more is JSON.
CREATE TABLE feedhistory.marks (
	feed     BIGINT NOT NULL REFERENCES feedhistory.feeds (key) ON DELETE CASCADE,
	id       TEXT COLLATE "C" NOT NULL,
	long_id  TEXT COLLATE "C",
	read     TEXT COLLATE "C" NOT NULL,
	starred  TEXT COLLATE "C" NOT NULL,
	forward  TEXT COLLATE "C" NOT NULL,
	backward TEXT COLLATE "C" NOT NULL,
	more     TEXT    NOT NULL,
	PRIMARY KEY (feed, id)
);
CREATE INDEX marks_starred ON feedhistory.marks (starred) WHERE starred <> '';
CREATE INDEX marks_forward ON feedhistory.marks (forward) WHERE forward <> '';
CREATE INDEX marks_backward ON feedhistory.marks (backward) WHERE backward <> '';
