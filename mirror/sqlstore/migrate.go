package sqlstore

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

//go:embed migrations
var migrations embed.FS

// migrate brings the schema up to date. If several do so at once, SQLite serves
// one, and the others find the work done when they try again.
func (s *Store) migrate(ctx context.Context) error {
	files, err := fs.Sub(migrations, "migrations/"+s.migrations)
	if err != nil {
		return err
	}
	engine := goose.DialectSQLite3
	options := []goose.ProviderOption{
		goose.WithTableName("schema_versions"), goose.WithSlog(slog.New(slog.DiscardHandler)),
		goose.WithDisableGlobalRegistry(true),
	}
	if s.dollars {
		locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(1, 60))
		if err != nil {
			return err
		}
		engine, options = goose.DialectPostgres, append(options, goose.WithSessionLocker(locker))
	}
	provider, err := goose.NewProvider(engine, s.db, files, options...)
	if err != nil {
		return err
	}
	for try := time.Duration(1); ; try++ {
		if _, err = provider.Up(ctx); err == nil || !s.one || try == 5 || ctx.Err() != nil {
			break
		}
		time.Sleep(try * 20 * time.Millisecond)
	}
	if err != nil {
		return fmt.Errorf("the schema cannot be brought up to date: %w", err)
	}
	current, newest, err := provider.GetVersions(ctx)
	if err != nil {
		return err
	}
	return tooNew(current, newest)
}
