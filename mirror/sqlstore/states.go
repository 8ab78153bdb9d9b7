package sqlstore

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/feedhistory/feedhistory/mirror"
)

// States returns the states of feeds, by their URLs. Feeds that are not in the
// store are missing in the result. To ask for many at once is faster than for one
// after the other.
func (s *Store) States(ctx context.Context, urls []string) (map[string]*mirror.Feed, error) {
	rows, err := s.query(ctx, selectFeeds+" WHERE url"+s.in, list(&s.dialect, keysOf(urls)))
	if err != nil {
		return nil, failure(ctx, err)
	}
	defer rows.Close()
	states := make(map[string]*mirror.Feed, len(urls))
	for rows.Next() {
		f := &mirror.Feed{}
		var state string
		if err := rows.Scan(&f.Version, &state); err != nil {
			return nil, failure(ctx, err)
		}
		if err := json.Unmarshal([]byte(state), f); err != nil {
			return nil, err
		}
		states[f.URL] = f
	}
	return states, failure(ctx, rows.Err())
}

// stateText is what the column state has. Markup in it is not escaped: that would
// make it half as long again.
func stateText(f *mirror.Feed) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(f)
	return strings.TrimSuffix(b.String(), "\n"), err
}

// UpdateStates returns a statement of PostgreSQL's that stores the states of many
// feeds at once, as Commit stores one in a change of nothing else. It is for a
// transaction of the caller's own, who decides whether that is to be durable. Each
// feed must be at the version that its state has, and is then at the next. The
// statement returns the places of those states in the list that it has stored,
// from 1: feeds at other versions, and those that are not in the store, stay as
// they are.
func UpdateStates(states []*mirror.Feed) (query string, args []any, err error) {
	n := len(states)
	urls, versions, titles, kinds, verdicts := make([]string, n), make([]int64, n), make([]string, n), make([]string, n), make([]string, n)
	entries, deleted, documents := make([]int64, n), make([]int64, n), make([]int64, n)
	polled, next, gone, errs, texts := make([]string, n), make([]string, n), make([]bool, n), make([]string, n), make([]string, n)
	for i, f := range states {
		f = inUTC(f)
		text, err := stateText(f)
		if err != nil {
			return "", nil, err
		}
		urls[i], versions[i], titles[i], kinds[i], verdicts[i] = keyOf(f.URL), f.Version, escaped(f.Title), f.Kind.String(), f.Verdict.String()
		entries[i], deleted[i], documents[i] = f.Entries, f.Deleted, f.Documents
		polled[i], next[i], gone[i], errs[i], texts[i] = timeText(f.Polled), timeText(f.Next), f.Gone || f.Alias != "", escaped(f.Error), text
	}
	return updateStates, []any{urls, versions, titles, kinds, verdicts, entries, deleted, documents, polled, next, gone, errs, texts}, nil
}

const updateStates = `
	UPDATE feeds f SET (` + feedColumns + `) =
		(n.version + 1, n.title, n.kind, n.verdict, n.entries, n.deleted, n.documents, n.polled, n.next, n.gone, n.error, n.state)
	FROM unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::bigint[], $8::bigint[],
		$9::text[], $10::text[], $11::boolean[], $12::text[], $13::text[]) WITH ORDINALITY
		AS n (url, version, title, kind, verdict, entries, deleted, documents, polled, next, gone, error, state, place)
	WHERE f.url = n.url AND f.version = n.version
	RETURNING n.place`
