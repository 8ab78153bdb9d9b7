-- The fleet's own tables, beside those of mirror/sqlstore and River.

-- A host that feeds are asked for at. While a worker holds it, until is in the
-- future, and only that worker polls the host's feeds.
CREATE TABLE IF NOT EXISTS fleet_hosts (
	host   text COLLATE "C" PRIMARY KEY,
	due    timestamptz, -- when it is to have a job, again if it has got none; NULL: not at all
	holder bigint,      -- a number of the worker's own
	until  timestamptz,
	wait   timestamptz  -- until when it asks to be left alone (Retry-After)
) WITH (fillfactor = 70);

ALTER TABLE fleet_hosts ADD COLUMN IF NOT EXISTS wait timestamptz; -- since version 2

CREATE INDEX IF NOT EXISTS fleet_hosts_due ON fleet_hosts (due);

-- A feed that is subscribed to. What it has said of itself is in the store;
-- here is what all feeds are asked about together, as of the last poll.
CREATE TABLE IF NOT EXISTS fleet_feeds (
	url      text COLLATE "C" PRIMARY KEY,
	host     text COLLATE "C" NOT NULL, -- of the address where it is asked for
	due      timestamptz,               -- NULL: it is gone, or a dead letter
	tries    integer NOT NULL DEFAULT 0, -- polls in a row that did not come to an end
	polled   timestamptz,
	verdict  text NOT NULL DEFAULT '',
	failures integer NOT NULL DEFAULT 0,
	error    text NOT NULL DEFAULT '',
	gone     boolean NOT NULL DEFAULT false,
	dead     text,                      -- why it is a dead letter
	died     timestamptz
) WITH (fillfactor = 70);

CREATE INDEX IF NOT EXISTS fleet_feeds_due ON fleet_feeds (host, due);
CREATE INDEX IF NOT EXISTS fleet_feeds_died ON fleet_feeds (died) WHERE died IS NOT NULL;

-- The version of these tables: whoever finds it here changes nothing. It is the last to
-- be made.
CREATE TABLE IF NOT EXISTS fleet_schema (version integer NOT NULL);
DELETE FROM fleet_schema;
INSERT INTO fleet_schema VALUES (2);
