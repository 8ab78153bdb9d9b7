-- +goose Up

-- What has not changed since it was added, and a copy that is from when its entry
-- was updated, repeat a time of 30 bytes: they are stored as "=". The columns that
-- are read are as before.
ALTER TABLE entries RENAME COLUMN changed TO changed_own;
ALTER TABLE entries RENAME COLUMN at TO at_own;
ALTER TABLE entries ADD COLUMN changed TEXT AS (CASE changed_own WHEN '=' THEN added ELSE changed_own END) VIRTUAL;
ALTER TABLE entries ADD COLUMN at TEXT AS (CASE at_own WHEN '=' THEN updated ELSE at_own END) VIRTUAL;
