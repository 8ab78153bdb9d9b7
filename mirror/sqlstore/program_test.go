package sqlstore_test

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// The statements are those in the comments of mirror.OpPut, OpKeep and OpClear.
const (
	programTables = `CREATE TABLE entries (feed TEXT, id TEXT, rank TEXT NOT NULL, content TEXT, PRIMARY KEY (feed, id));
		CREATE TABLE feeds (url TEXT PRIMARY KEY, ledger TEXT)`
	programPut = `INSERT INTO entries (feed, id, rank, content) VALUES (:feed, :id, :rank, :content) ON CONFLICT (feed, id)
		DO UPDATE SET rank = excluded.rank, content = excluded.content WHERE excluded.rank >= entries.rank`
	programKeep  = `UPDATE entries SET rank = :rank WHERE feed = :feed AND id = :id AND rank < :rank`
	programClear = `UPDATE entries SET rank = :rank, content = NULL
		WHERE feed = :feed AND rank >= :since AND rank < :rank AND content IS NOT NULL`
)

// keepReading stores a Reading in one transaction.
func keepReading(ctx context.Context, db *sql.DB, url string, r *mirror.Reading) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	for _, c := range r.Changes {
		feed, id, rank := sql.Named("feed", url), sql.Named("id", c.ID), sql.Named("rank", c.Rank)
		switch c.Op {
		case mirror.OpPut:
			var content any // NULL: a deletion
			if c.Entry != nil {
				content = c.Entry.Title().Plain()
			}
			_, err = tx.ExecContext(ctx, programPut, feed, id, rank, sql.Named("content", content))
		case mirror.OpKeep:
			_, err = tx.ExecContext(ctx, programKeep, feed, id, rank)
		case mirror.OpClear:
			_, err = tx.ExecContext(ctx, programClear, feed, rank, sql.Named("since", c.Since))
		}
		if err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, "INSERT OR REPLACE INTO feeds (url, ledger) VALUES (?, ?)", url, r.Ledger); err != nil {
		return err
	}
	return tx.Commit()
}

// A program with a table of its own, in a database, has what is published, however often its walks
// are cut short.
func TestProgram(t *testing.T) {
	const url = "http://model.example/feed"
	for seed := range feedtest.Seeds(feedtest.Count(40)) {
		random := rand.New(rand.NewPCG(seed, 5))
		db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "program.db"))
		require.NoError(t, err)
		_, err = db.Exec(programTables)
		require.NoError(t, err)
		model := feedtest.NewModel("/feed", seed)
		m := &mirror.Mirror{Client: &feedhistory.Client{AllowPrivate: true, Tries: 1, Transport: feedtest.Direct{Handler: model}}}
		poll := func(most int) (last mirror.Ledger) {
			if err := db.QueryRow("SELECT ledger FROM feeds").Scan(&last); err != nil {
				require.ErrorIs(t, err, sql.ErrNoRows)
			}
			for r, err := range m.Poll(t.Context(), url, last) {
				if err != nil {
					break
				}
				if most--; most < 0 {
					break
				}
				require.True(t, r.Ledger.Follows(last))
				require.NoError(t, keepReading(t.Context(), db, url, r))
				last = r.Ledger
			}
			return last
		}
		for range 30 {
			if random.IntN(3) > 0 {
				model.Step()
				continue
			}
			model.Become([]string{"archived", "archived", "complete", "plain"}[random.IntN(4)])
			_ = poll(random.IntN(6))
		}
		model.Close()
		model.Become([]string{"archived", "complete"}[random.IntN(2)])
		for polls := 0; poll(1000).Feed().Verdict != feedhistory.VerdictWhole; polls++ {
			require.Less(t, polls, 20, "seed %d", seed)
		}
		rows, err := db.Query("SELECT id, content FROM entries WHERE content IS NOT NULL")
		require.NoError(t, err)
		has := map[string]string{}
		for rows.Next() {
			var id, content string
			require.NoError(t, rows.Scan(&id, &content))
			has[id] = content
		}
		require.NoError(t, rows.Err())
		require.Equal(t, model.Published(), has, "seed %d", seed)
		require.NoError(t, db.Close())
	}
}
