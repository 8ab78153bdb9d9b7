package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// An Info is an overview of a database.
type Info struct {
	Schema    int64 `json:"schema"`    // the version of the schema
	Bytes     int64 `json:"bytes"`     // the size: of a SQLite file without its log, of PostgreSQL's tables and indexes
	Unused    int64 `json:"unused"`    // the bytes of pages for Scrub to release; zero in PostgreSQL
	Feeds     int64 `json:"feeds"`     // the numbers of rows
	Entries   int64 `json:"entries"`   // with deleted ones
	Erased    int64 `json:"erased"`    // erased entries, of which only the IDs are kept; not among Entries
	Versions  int64 `json:"versions"`  // earlier versions of entries
	Documents int64 `json:"documents"` // archive documents processed
	Unindexed int64 `json:"unindexed"` // entries waiting to be indexed
}

// Describe returns an overview. It counts all rows. The error may be the context's.
func (s *Store) Describe(ctx context.Context) (*Info, error) {
	i := &Info{}
	bytes, unused := "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size", "SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size"
	if !s.one {
		bytes = "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_catalog.pg_class WHERE relnamespace = to_regnamespace('feedhistory') AND relkind = 'r'"
		unused = "SELECT 0"
	}
	for query, n := range map[string]*int64{
		bytes: &i.Bytes, unused: &i.Unused,
		"SELECT count(*) FROM fh.entries WHERE state <> 'erased'": &i.Entries,
		"SELECT count(*) FROM fh.entries WHERE state = 'erased'":  &i.Erased,
		"SELECT max(version) FROM fh.schema":                      &i.Schema,
		"SELECT count(*) FROM fh.feeds":                           &i.Feeds,
		"SELECT count(*) FROM fh.versions":                        &i.Versions,
		"SELECT count(*) FROM fh.documents":                       &i.Documents,
		"SELECT count(*) FROM fh.unindexed":                       &i.Unindexed,
	} {
		if err := s.db.QueryRowContext(ctx, s.text(query)).Scan(n); err != nil {
			return nil, failure(ctx, err)
		}
	}
	return i, nil
}

// Backup copies a SQLite database, as it is now, to a new or empty file. Others may use
// the database meanwhile. The copy has no unused pages and needs no log.
// The error may be the context's.
func (s *Store) Backup(ctx context.Context, file string) error {
	if !s.one {
		return fmt.Errorf("sqlstore: %w: use pg_dump", errors.ErrUnsupported)
	}
	err := s.aside(ctx, func(conn *sql.Conn) error {
		_, err := conn.ExecContext(ctx, "VACUUM INTO ?", file)
		return err
	})
	return failure(ctx, err)
}

// aside lends a connection to SQLite with permission to write beside the database, even if
// it may not write to the database itself.
func (s *Store) aside(ctx context.Context, do func(conn *sql.Conn) error) error {
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	only := 0
	if err := conn.QueryRowContext(ctx, "PRAGMA query_only").Scan(&only); err != nil {
		return err
	}
	if _, err := conn.ExecContext(ctx, "PRAGMA query_only = OFF"); err != nil {
		return err
	}
	defer func() {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), fmt.Sprintf("PRAGMA query_only = %d", only))
	}()
	return do(conn)
}
