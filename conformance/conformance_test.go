package conformance_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/conformance"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

func TestMain(m *testing.M) { feedtest.Main(m) }

// fault names the environment variable that makes the test's reader drop an entry.
const fault = "CONFORMANCE_TEST_FAULT"

// read reads every feed to its end.
func read(ctx context.Context, url, _ string) (*conformance.Result, error) {
	c := &feedhistory.Client{AllowPrivate: true, Tries: 1}
	defer c.CloseIdle()
	h, err := c.Fetch(ctx, url)
	if h == nil {
		return &conformance.Result{Failed: err != nil}, nil
	}
	r := &conformance.Result{Verdict: h.Verdict().String()}
	for _, e := range h.Entries {
		r.Entries = append(r.Entries, conformance.ReaderEntry{ID: e.ID, Title: e.Title().Plain()})
	}
	if os.Getenv(fault) != "" {
		r.Entries = r.Entries[:1]
	}
	return r, nil
}

func TestReader(t *testing.T) {
	conformance.Run(t, read, &conformance.Options{NoState: true, Flags: []string{"rfc", "!hostile"}, Skip: []string{"behaviour/*"}})
}

// mirrors returns a reader with a mirror, which skips a poll that is not due.
func mirrors() conformance.Reader {
	var kept sync.Map
	return func(ctx context.Context, url, state string) (*conformance.Result, error) {
		c := &feedhistory.Client{AllowPrivate: true, Tries: 1}
		defer c.CloseIdle()
		store, _ := kept.LoadOrStore(state, mirror.NewMemory())
		m := &mirror.Mirror{Store: store.(mirror.Store), Client: c}
		if f, err := m.Store.Feed(ctx, url); err != nil || conformance.Due(ctx) || f.Due(time.Now()) {
			if _, err := m.Update(ctx, url); err != nil {
				return nil, err
			}
		}
		r := &conformance.Result{}
		for e, err := range m.Store.Entries(ctx, mirror.Query{}) {
			if err != nil {
				return nil, err
			}
			r.Entries = append(r.Entries, conformance.ReaderEntry{ID: e.ID, Title: e.Content.Title})
		}
		return r, nil
	}
}

func TestMirror(t *testing.T) {
	conformance.Run(t, mirrors(), &conformance.Options{Flags: []string{"polls"}, Skip: []string{"polls/a*", "polls/c*", "polls/e*", "polls/f*"}})
}

// A publisher is tested by the steps that change its feed.
func TestPublisher(t *testing.T) {
	out := &publish.MemoryOutput{}
	server := feedtest.Server(t, &publish.Handler{FS: out})
	p := &publish.Publisher{Output: out, Base: server.URL + "/", Head: &feedhistory.Document{Title: "A"}, Split: compose.Split{Size: 2}}
	n, clock := 0, time.Date(2003, 12, 1, 0, 0, 0, 0, time.UTC)
	add := func(ctx context.Context) error {
		n++
		clock = clock.Add(time.Hour)
		e, err := compose.Draft{ID: fmt.Sprintf("urn:%d", n), Title: feedhistory.Text{Body: "New"}, Updated: clock}.Entry()
		return errors.Join(err, p.Append(ctx, e))
	}
	require.NoError(t, add(t.Context()))
	conformance.RunPublisher(t, &conformance.PublisherTest{URL: p.URL(), Add: add})
}

// A reader with a fault fails, case by case.
func TestFault(t *testing.T) {
	if os.Getenv(fault) != "" {
		t.Skip("runs itself")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestReader$/walk/archived$", "-test.v")
	cmd.Env = append(os.Environ(), fault+"=1")
	out, err := cmd.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "--- FAIL: TestReader/walk/archived")
	require.Contains(t, string(out), "the entry is missing")
	require.NotContains(t, string(out), "walk/complete")
}
