package database

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"os"

	"github.com/feedhistory/feedhistory/cmd/internal/download"
	"github.com/feedhistory/feedhistory/cmd/internal/logins"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

// A Store is a store with its open database.
type Store struct {
	*sqlstore.Store
	DB   *sql.DB
	Keys *logins.Keyring // the private feeds; nil if the store is only read
	File string          // a file opened on the assumption of no writers; "" if none was
	Info os.FileInfo     // about this file, when it was opened
}

// Commit implements mirror.Store. It marks private feeds in the database, so history
// servers on other machines, which do not have the credentials, do not show these feeds.
func (s *Store) Commit(ctx context.Context, c *mirror.Commit) error {
	if s.Keys != nil {
		private, err := s.Keys.Private()
		if err != nil {
			return err
		}
		c.Feed.Private = c.Feed.Private || private[c.Feed.URL] != nil
	}
	return s.Store.Commit(ctx, c)
}

// Remove implements mirror.Store. It also removes the feed's credentials, and the records
// of its downloads.
func (s *Store) Remove(ctx context.Context, url string) error {
	err := s.Store.Remove(ctx, url)
	if err == nil && s.Keys != nil {
		err = s.Keys.Replace(url, "")
	}
	if err != nil {
		return err
	}
	records := &download.Records{DB: s.DB}
	return cmp.Or(records.Open(ctx), records.Forget(ctx, url))
}

// Close closes the database. It returns an error if another process wrote to a file
// opened on the assumption of no writers.
func (s *Store) Close() error {
	err := s.DB.Close()
	if s.File == "" {
		return err
	}
	info, failed := os.Stat(s.File)
	if failed == nil && (!info.ModTime().Equal(s.Info.ModTime()) || info.Size() != s.Info.Size()) || hasLog(s.File) {
		failed = errors.New(s.File + ": another process wrote to it meanwhile, so the output may be wrong; run the command again")
	}
	return errors.Join(err, failed)
}
