package sqlstore

import (
	"context"
	"database/sql"
	"encoding/json"
	"iter"
	"slices"

	"github.com/feedhistory/feedhistory/mirror"
)

const documentColumns = "feed, url, rank_time, rank_place, state"

// documents stores the documents of a change. Of two documents, the one with
// the larger key was committed last.
func (t transaction) documents(feed int64, c *mirror.Commit) error {
	if c.Forget {
		if err := t.exec("DELETE FROM fh.documents WHERE feed = ?", feed); err != nil {
			return err
		}
	}
	for _, d := range c.Documents {
		if err := t.document(feed, d); err != nil {
			return err
		}
	}
	return nil
}

func (t transaction) document(feed int64, d *mirror.DocumentRecord) error {
	state, err := json.Marshal(inUTC(d))
	if err != nil {
		return err
	}
	url := keyOf(d.URL)
	if err := t.exec("DELETE FROM fh.documents WHERE feed = ? AND url = ?", feed, url); err != nil {
		return err
	}
	values := []any{feed, url, timeText(d.Rank.Time), d.Rank.Seq, string(state)}
	keys, err := t.numbers("INSERT INTO fh.documents ("+documentColumns+", checksum) VALUES (?, ?, ?, ?, ?, ?) RETURNING key",
		append(values, t.sums.of(values))...)
	if err != nil {
		return err
	}
	return t.names(feed, keys[0], d)
}

// names stores the names of a document.
func (t transaction) names(feed, document any, d *mirror.DocumentRecord) error {
	names := keysOf(d.Names)
	slices.Sort(names)
	var values []any
	for _, name := range slices.Compact(names) {
		values = append(values, feed, name, document)
	}
	return t.insert("fh.names", "feed, name, document", "(?, ?, ?)", "", values)
}

// Document implements mirror.Store.
func (s *Store) Document(ctx context.Context, feed, url string) (*mirror.DocumentRecord, error) {
	for d, err := range s.documents(ctx, 1, func(*mirror.DocumentRecord) *question {
		// The sum prevents every planner from looking for the name in the order
		// of documents.
		return ask("SELECT state FROM fh.documents WHERE key = (SELECT max(document + 0) FROM fh.names WHERE name = ? AND "+
			ofFeed+")", keyOf(url), keyOf(feed))
	}) {
		return d, err
	}
	return nil, notFound("document", url)
}

// Documents implements mirror.Store.
func (s *Store) Documents(ctx context.Context, feed string) iter.Seq2[*mirror.DocumentRecord, error] {
	return s.documents(ctx, 0, func(after *mirror.DocumentRecord) *question {
		q := ask("SELECT state FROM fh.documents WHERE "+ofFeed+s.every("rank_time >= ''"), keyOf(feed))
		if after != nil {
			q.add(" AND (rank_time, rank_place, url) < (?, ?, ?)", timeText(after.Rank.Time), after.Rank.Seq, keyOf(after.URL))
		}
		q.add(" ORDER BY rank_time DESC, rank_place DESC, url DESC")
		return q
	})
}

func (s *Store) documents(ctx context.Context, limit int, query func(*mirror.DocumentRecord) *question) iter.Seq2[*mirror.DocumentRecord, error] {
	ask := func(after *mirror.DocumentRecord) (*question, error) { return query(after), nil }
	return pages(ctx, s, limit, ask, func(rows *sql.Rows) (*mirror.DocumentRecord, int, error) {
		var state string
		d := &mirror.DocumentRecord{}
		if err := rows.Scan(&state); err != nil {
			return nil, 0, err
		}
		return d, len(state), json.Unmarshal([]byte(state), d)
	})
}
