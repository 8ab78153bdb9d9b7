package conformance_test

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/conformance"
	"github.com/feedhistory/feedhistory/mirror"
)

func cases(t testing.TB) []*conformance.Case {
	t.Helper()
	cases, err := conformance.Cases()
	require.NoError(t, err)
	require.NotEmpty(t, cases)
	return cases
}

// ours is this library: a walk where there is one poll, else a mirror.
func ours() conformance.Reader {
	var mu sync.Mutex
	mirrors := map[string]*mirror.Mirror{}
	return func(ctx context.Context, url, state string) (*conformance.Result, error) {
		client := &feedhistory.Client{Policy: feedhistory.Policy{AllowPrivate: true}, Retry: feedhistory.Retry{Tries: 2, Base: time.Millisecond}}
		if os.Getenv("WALK") == "" {
			mu.Lock()
			m := mirrors[state]
			if m == nil {
				m = &mirror.Mirror{Store: &mirror.Memory{}, Client: client}
				mirrors[state] = m
			}
			mu.Unlock()
			return mirrored(ctx, m, url)
		}
		h, err := client.Fetch(ctx, url)
		if h == nil {
			return &conformance.Result{Failed: err != nil}, nil
		}
		r := &conformance.Result{Verdict: h.Verdict().String(), Gaps: gaps(h.Gaps), Deleted: []string{}}
		for _, e := range h.Entries {
			r.Entries = append(r.Entries, conformance.Entry{ID: e.ID, Title: e.Title().Plain()})
		}
		for _, d := range h.Deleted {
			r.Deleted = append(r.Deleted, d.Ref)
		}
		return r, nil
	}
}

func mirrored(ctx context.Context, m *mirror.Mirror, url string) (*conformance.Result, error) {
	changes, err := m.Update(ctx, url)
	if changes == nil {
		return nil, errors.Join(errors.New("no changes"), err)
	}
	r := &conformance.Result{Verdict: changes.Verdict.String(), Gaps: gaps(changes.Gaps)}
	for record, err := range m.Store.Entries(ctx, mirror.Query{}) {
		if err != nil {
			return nil, err
		}
		e, err := record.Entry()
		if err != nil {
			return nil, err
		}
		r.Entries = append(r.Entries, conformance.Entry{ID: e.ID, Title: e.Title().Plain()})
	}
	r.Failed = err != nil && len(r.Entries) == 0
	return r, nil
}

func gaps(gaps []*feedhistory.Gap) []string {
	urls := []string{}
	for _, g := range gaps {
		urls = append(urls, g.URL)
	}
	return urls
}

func TestOurs(t *testing.T) {
	report, err := conformance.Run(t.Context(), ours(), cases(t), nil)
	require.NoError(t, err)
	report.WriteText(os.Stdout, true)
}
