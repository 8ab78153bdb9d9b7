package sqlstore

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
)

// The directory of a dialect has a file for each version of the schema; the file beside
// it, with the dialect's name, has the whole schema of the newest version.
//
//go:embed migrations
var migrations embed.FS

// migrate makes the schema, or brings it up to date. It takes no lock if there is
// nothing to do. If several processes migrate at once, one does it, and the others find
// it done.
func (s *Store) migrate(ctx context.Context) (err error) {
	for try := range time.Duration(5) {
		if err = s.migrateOnce(ctx); err == nil || !s.one || ctx.Err() != nil || errors.Is(err, ErrForeign) {
			return err
		}
		time.Sleep((try + 1) * 20 * time.Millisecond)
	}
	return fmt.Errorf("the schema cannot be brought up to date: %w", err)
}

func (s *Store) migrateOnce(ctx context.Context) error {
	newest, err := s.newestVersion()
	if err != nil {
		return err
	}
	current, err := s.version(ctx, s.db)
	if err != nil || current >= newest {
		return err
	}
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if s.claim != "" {
		if _, err := tx.ExecContext(ctx, s.claim); err != nil {
			return err
		}
	}
	if current, err = s.version(ctx, tx); err != nil || current >= newest { // another process was faster
		return err
	}
	scripts, err := s.scripts(current)
	if err != nil {
		return err
	}
	scripts = append(scripts, s.text("DELETE FROM fh.schema"), s.text(fmt.Sprintf("INSERT INTO fh.schema (version) VALUES (%d)", newest)))
	for _, script := range scripts {
		if _, err := tx.ExecContext(ctx, script); err != nil {
			return err
		}
	}
	return tx.Commit()
}

// A migration is a file leading to a version of the schema.
type migration struct {
	version int64
	file    string
}

// steps returns the migrations, in order.
func (d *dialect) versions() (list []migration, err error) {
	files, err := migrations.ReadDir("migrations/" + d.directory)
	for _, f := range files {
		m := migration{file: "migrations/" + d.directory + "/" + f.Name()}
		if _, err := fmt.Sscanf(strings.TrimLeft(f.Name(), "0"), "%d_", &m.version); err != nil {
			return nil, err
		}
		list = append(list, m)
	}
	return list, err
}

// newestVersion returns the newest version of the schema this program knows.
func (d *dialect) newestVersion() (int64, error) {
	list, err := d.versions()
	if err != nil {
		return 0, err
	}
	return list[len(list)-1].version, nil
}

// scripts returns the statements from a version to the newest: from nothing, the whole
// schema.
func (d *dialect) scripts(from int64) (list []string, err error) {
	files := []string{"migrations/" + d.directory + ".sql"}
	if from > 0 {
		steps, err := d.versions()
		if err != nil {
			return nil, err
		}
		files = nil
		for _, m := range steps {
			if m.version > from {
				files = append(files, m.file)
			}
		}
	}
	for _, file := range files {
		text, err := fs.ReadFile(migrations, file)
		if err != nil {
			return nil, err
		}
		list = append(list, string(text))
	}
	return list, nil
}

// version returns the version of the schema in a database; zero if there is none. It
// writes nothing. It is an error if a newer program has written to the database, or,
// matching ErrForeign, if tables of another program have our names.
func (s *Store) version(ctx context.Context, q queryer) (version int64, err error) {
	own, err := column(ctx, q, s.own)
	if err != nil {
		return 0, err
	}
	query := s.text("SELECT coalesce(max(version), 0) FROM fh.schema")
	if !hasAll(own, "schema") {
		for _, name := range []string{"feeds", "polls", "entries", "versions", "documents", "names", "search", "unindexed"} {
			if hasAll(own, name) {
				return 0, fmt.Errorf("%w: %s%s", ErrForeign, s.prefix, name)
			}
		}
		earlier, err := column(ctx, q, s.earlier)
		if err != nil || !hasAll(earlier, "schema_versions.version_id", "schema_versions.is_applied",
			"feeds.long_url", "feeds.state", "entries.tomb_place", "documents.rank_place") {
			return 0, err
		}
		query = "SELECT coalesce(max(version_id), 0) FROM schema_versions WHERE is_applied"
	}
	newest, err := s.newestVersion()
	if err == nil {
		err = q.QueryRowContext(ctx, query).Scan(&version)
	}
	if err == nil && version > newest {
		err = fmt.Errorf("the database has version %d of the schema, and this program knows %d", version, newest)
	}
	return version, err
}
