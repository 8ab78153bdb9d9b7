package download

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// Records are a database's records of downloads.
type Records struct{ DB *sql.DB }

const schema = `CREATE TABLE IF NOT EXISTS feedhistory_downloads (
	key TEXT PRIMARY KEY, feed TEXT NOT NULL, url TEXT NOT NULL, file TEXT NOT NULL, size BIGINT NOT NULL, validator TEXT NOT NULL, taken TEXT NOT NULL)`

// Open creates the table, if the database does not have it.
func (r *Records) Open(ctx context.Context) error {
	_, err := r.DB.ExecContext(ctx, schema)
	return err
}

// IsTaken reports whether a file has been downloaded.
func (r *Records) IsTaken(ctx context.Context, f File) (bool, error) {
	var file string
	err := r.DB.QueryRowContext(ctx, "SELECT file FROM feedhistory_downloads WHERE key = $1", keyOf(f)).Scan(&file)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return file != "", err
}

// Part returns the validator of an interrupted download; "" if there is none to resume.
func (r *Records) Part(ctx context.Context, f File) (validator string, err error) {
	err = r.DB.QueryRowContext(ctx, "SELECT validator FROM feedhistory_downloads WHERE key = $1 AND file = ''", keyOf(f)).Scan(&validator)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return validator, err
}

// Begin records the beginning of a download.
func (r *Records) Begin(ctx context.Context, f File, validator string) error {
	return r.put(ctx, f, "", 0, validator)
}

// Taken records a downloaded file.
func (r *Records) Taken(ctx context.Context, f File, file string, size int64) error {
	return r.put(context.WithoutCancel(ctx), f, file, size, "")
}

func (r *Records) put(ctx context.Context, f File, file string, size int64, validator string) error {
	_, err := r.DB.ExecContext(ctx, `INSERT INTO feedhistory_downloads (key, feed, url, file, size, validator, taken)
		VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (key) DO UPDATE SET file = excluded.file, size = excluded.size, validator = excluded.validator, taken = excluded.taken`,
		keyOf(f), f.Feed, f.URL, file, size, validator, time.Now().UTC().Format(time.RFC3339))
	return err
}

// Forget removes the records of a feed's files.
func (r *Records) Forget(ctx context.Context, feed string) error {
	_, err := r.DB.ExecContext(ctx, "DELETE FROM feedhistory_downloads WHERE feed = $1", feed)
	return err
}
