-- +goose Up

-- How many bytes an entry counts with in its feed's quota, and a version; zero
-- for those that were stored before there was one.
ALTER TABLE entries ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
ALTER TABLE versions ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
