-- +goose Up

-- FTS5 gathers the words of so many bytes before it writes them: of a batch. With its
-- usual megabyte it writes several times, and then merges what it has written.
INSERT INTO search (search, rank) VALUES ('hashsize', 4194304);
