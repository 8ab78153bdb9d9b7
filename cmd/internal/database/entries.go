package database

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// EntriesOfFeeds yields the entries of some feeds, or of all feeds if it gets no names.
// As in the store, the newest entries come first.
func EntriesOfFeeds(ctx context.Context, store mirror.Store, q mirror.Query, feeds []string) iter.Seq2[*mirror.Record, error] {
	var lists []iter.Seq2[*mirror.Record, error]
	for _, feed := range feeds {
		q.Feed = feed
		lists = append(lists, store.Entries(ctx, q))
	}
	if len(lists) == 0 {
		lists = append(lists, store.Entries(ctx, q))
	}
	if len(lists) == 1 {
		return lists[0]
	}
	return func(yield func(*mirror.Record, error) bool) {
		var heads []head
		for _, list := range lists {
			next, stop := iter.Pull2(list)
			defer stop()
			heads = append(heads, head{next: next})
			heads[len(heads)-1].advance()
		}
		for n := 0; q.Limit == 0 || n < q.Limit; n++ {
			first := firstHead(heads)
			if first == nil || !yield(first.record, first.err) || first.err != nil {
				return
			}
			first.advance()
		}
	}
}

// A head is the first element of the rest of a list; at the end of the list, record and
// err are nil.
type head struct {
	next   func() (*mirror.Record, error, bool)
	record *mirror.Record
	err    error
}

func (h *head) advance() { h.record, h.err, _ = h.next() }

// firstHead returns the head whose entry comes first, or the head of a failed list; nil
// if all lists have ended.
func firstHead(heads []head) (first *head) {
	for i := range heads {
		switch h := &heads[i]; {
		case h.err != nil:
			return h
		case h.record != nil && (first == nil || isBefore(h.record, first.record)):
			first = h
		}
	}
	return first
}

// isBefore reports whether an entry precedes another in a list with the newest first.
func isBefore(a, b *mirror.Record) bool {
	return cmp.Or(b.Time().Compare(a.Time()), cmp.Compare(b.Feed, a.Feed)) < 0
}

// ID returns the id of an entry, given its beginning, or an ellipsis and its end: the text
// itself if an entry of the feeds has it as its id, or if it fits no id. It returns a usage
// error if the text fits several ids.
func ID(ctx context.Context, store mirror.Store, feeds []string, text string) (string, error) {
	for _, feed := range feeds {
		known, err := store.Records(ctx, feed, []string{text})
		if err != nil || known[text] != nil {
			return text, err
		}
	}
	fits, side := strings.HasPrefix, "begin with "
	part := text
	if end, ok := strings.CutPrefix(text, "…"); ok {
		fits, side, part = strings.HasSuffix, "end with ", end
	}
	var found []string
	for _, feed := range feeds {
		for r, err := range store.Entries(ctx, mirror.Query{Feed: feed, Deleted: true}) {
			if err != nil {
				return "", err
			}
			if fits(r.ID, part) && !slices.Contains(found, r.ID) {
				if found = append(found, r.ID); len(found) > 1 {
					return "", terminal.UsageError("several ids " + side + part + ": " + strings.Join(found, ", ") + ", …")
				}
			}
		}
	}
	if len(found) == 0 {
		return text, nil
	}
	return found[0], nil
}

// mostTries bounds the attempts to change a feed while it is polled.
const mostTries = 20

// Amend changes the state of a feed in a store, unless amend returns false. It changes
// nothing if the store does not have the feed.
func Amend(ctx context.Context, store mirror.Store, url string, amend func(*mirror.Feed) bool) (err error) {
	for range mostTries {
		f, missing := store.Feed(ctx, url)
		if errors.Is(missing, mirror.ErrNotFound) {
			return nil
		}
		if missing != nil || !amend(f) {
			return missing
		}
		if err = store.Commit(ctx, &mirror.Commit{Feed: f}); !errors.Is(err, mirror.ErrConflict) {
			return err
		}
	}
	return err
}

// Printed are a database's records of the entries that have been printed under a name: for
// each feed the number of the last commit whose entries were.
type Printed struct {
	DB   *sql.DB
	Name string
}

const printedSchema = `CREATE TABLE IF NOT EXISTS feedhistory_printed (name TEXT NOT NULL, feed TEXT NOT NULL, commits BIGINT NOT NULL, PRIMARY KEY (name, feed))`

// Read returns the last commit of each feed.
func (p *Printed) Read(ctx context.Context) (map[string]int64, error) {
	if _, err := p.DB.ExecContext(ctx, printedSchema); err != nil {
		return nil, err
	}
	rows, err := p.DB.QueryContext(ctx, "SELECT feed, commits FROM feedhistory_printed WHERE name = $1", p.Name)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	last := map[string]int64{}
	for rows.Next() {
		var feed string
		var commits int64
		if err := rows.Scan(&feed, &commits); err != nil {
			return nil, err
		}
		last[feed] = commits
	}
	return last, rows.Err()
}

// Write records the feeds' entries up to now as printed.
func (p *Printed) Write(ctx context.Context, feeds []*mirror.Feed) error {
	tx, err := p.DB.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	for _, f := range feeds {
		if err == nil {
			_, err = tx.ExecContext(ctx, `INSERT INTO feedhistory_printed (name, feed, commits) VALUES ($1, $2, $3)
				ON CONFLICT (name, feed) DO UPDATE SET commits = excluded.commits`, p.Name, f.URL, f.Commits)
		}
	}
	if err != nil {
		return errors.Join(err, tx.Rollback())
	}
	return tx.Commit()
}

// Forget removes the records of a feed.
func (p *Printed) Forget(ctx context.Context, feed string) error {
	if _, err := p.DB.ExecContext(ctx, printedSchema); err != nil {
		return err
	}
	_, err := p.DB.ExecContext(ctx, "DELETE FROM feedhistory_printed WHERE feed = $1", feed)
	return err
}
