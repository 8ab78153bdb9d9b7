package mirror_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// A host answers requests by URL, with documents or with whatever else a test
// sets.
type host struct {
	answer map[string]http.HandlerFunc
	asked  feedtest.List[string]
}

func (h *host) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	url := "http://" + r.Host + r.URL.Path
	h.asked.Add(url)
	if answer := h.answer[url]; answer != nil {
		answer(w, r)
		return
	}
	http.NotFound(w, r)
}

// requests returns the requests since its last call.
func (h *host) requests() []string { return h.asked.Took() }

// document answers with a feed document that has these entries and this markup
// in its head.
func document(head string, ids ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		var b strings.Builder
		b.WriteString(`<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:feed</id>` + head)
		for _, id := range ids {
			fmt.Fprintf(&b, `<entry><id>%s</id><updated>2005-01-01T00:00:00Z</updated></entry>`, id)
		}
		_, _ = w.Write([]byte(b.String() + `</feed>`))
	}
}

func prev(url string) string { return `<link rel="prev-archive" href="` + url + `"/>` }

func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusMovedPermanently) }
}

func leaveAlone(seconds string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", seconds)
		w.WriteHeader(http.StatusServiceUnavailable)
	}
}

const (
	aURL = "http://a.example/feed"
	bURL = "http://b.example/feed"
)

// archives is a feed of four documents that asks to be polled every two weeks.
func archives() *host {
	fresh := document(prev("/3"), "4")
	return &host{answer: map[string]http.HandlerFunc{
		aURL: func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Cache-Control", "max-age=1209600")
			fresh(w, r)
		},
		"http://a.example/3": document(prev("/2"), "3"),
		"http://a.example/2": document(prev("/1"), "2"),
		"http://a.example/1": document("", "1"),
	}}
}

// slowly delays each answer by a second, so that the document before it is
// committed by then.
func slowly(h *host) *host {
	for url, answer := range h.answer {
		h.answer[url] = func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Second)
			answer(w, r)
		}
	}
	return h
}

func feedOf(t *testing.T, store mirror.Store, url string) *mirror.Feed {
	t.Helper()
	f, err := store.Feed(t.Context(), url)
	require.NoError(t, err)
	return f
}

// due returns the URLs of the feeds that a store says are due.
func due(t *testing.T, store mirror.Store) (urls []string) {
	t.Helper()
	for _, f := range feedtest.All(t, store.Feeds(t.Context(), mirror.FeedQuery{Due: time.Now()})) {
		urls = append(urls, f.URL)
	}
	return urls
}

// Whatever ends a walk early, the rest is due at once. The cause decides
// whether the feed seems to be under way for another minute.
func TestWhatIsCutShortIsDue(t *testing.T) {
	for _, test := range []struct {
		name     string
		commits  int // before it happens
		failure  error
		underWay bool
	}{
		{"interrupted before the first commit", 0, nil, false},
		{"interrupted", 1, nil, false},
		{"interrupted at the last commit", 3, nil, false},
		{"the store fails", 1, errors.New("the disk is full"), true},
		{"the store fails at the last commit", 3, errors.New("the disk is full"), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, ctx, cancel := mirror.NewMemory(), t.Context(), func() {}
				failing := &crashing{Store: store, left: test.commits}
				if test.failure == nil {
					ctx, cancel = context.WithCancel(ctx)
					failing.then = cancel
				}
				defer cancel()
				changes, err := newMirror(failing, slowly(archives())).Update(ctx, aURL)
				require.Error(t, err)
				require.True(t, !changes.Feed.Next.After(time.Now()), "%v", changes.Feed.Next)

				f := feedOf(t, store, aURL)
				require.True(t, f.Due(time.Now()))
				require.Equal(t, []string{aURL}, due(t, store))
				require.Equal(t, test.underWay, isLeft(t, f))
				time.Sleep(time.Minute)
				require.False(t, isLeft(t, feedOf(t, store, aURL)))

				changes = polled(t, newMirror(store, slowly(archives())), aURL)
				require.Equal(t, feedhistory.VerdictWhole, changes.Feed.Verdict)
				require.Len(t, held(t, store, aURL), 4)
				f = feedOf(t, store, aURL)
				require.False(t, f.Due(time.Now()))
				require.Empty(t, due(t, store))
				require.Equal(t, 24*time.Hour, time.Until(f.Next).Round(time.Minute))
			})
		})
	}
}

// isLeft reports whether a Poller leaves a feed that is due to another mirror, which seems to
// be at work on it.
func isLeft(t testing.TB, f *mirror.Feed) bool {
	return untilPolled(t, f, time.Millisecond) == time.Millisecond
}

// untilPolled returns how long a Poller waits before it polls a feed, at most a limit.
func untilPolled(t testing.TB, f *mirror.Feed, limit time.Duration) time.Duration {
	twin := *f
	twin.Commits = 0
	store, begun, polled := mirror.NewMemory(), time.Now(), limit
	require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: &twin}))
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	p := &mirror.Poller{Mirror: &mirror.Mirror{Store: store}, Poll: func(_ context.Context, f *mirror.Feed) (*mirror.Report, error) {
		polled = time.Since(begun)
		cancel()
		return &mirror.Report{Feed: f}, nil
	}}
	p.Run(ctx)
	return polled
}

// While a poll is under way, the feed's state says so.
func TestUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, h := mirror.NewMemory(), archives()
		h.answer["http://a.example/1"] = func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Millisecond) // until then, what has come before is stored
			f := feedOf(t, store, aURL)
			require.True(t, isLeft(t, f))
			require.True(t, f.Due(time.Now()))
			require.Equal(t, feedhistory.VerdictPartial, f.Verdict)
			document("", "1")(w, r)
		}
		_, err := newMirror(store, h).Update(t.Context(), aURL)
		require.NoError(t, err)
		require.False(t, feedOf(t, store, aURL).Unfinished)
	})
}

// A feed whose host has asked to be left alone is polled after that, and soon, wherever the
// poll that was asked has stopped.
func TestHostThatAsksIsLeftAlone(t *testing.T) {
	asked := 0
	for commits := range 5 {
		synctest.Test(t, func(t *testing.T) {
			store, h := mirror.NewMemory(), &host{answer: map[string]http.HandlerFunc{
				aURL: document(prev("/3")+prev("http://b.example/2"), "4"),
				"http://a.example/3": func(w http.ResponseWriter, r *http.Request) {
					w.Header().Set("Retry-After", "40")
					w.WriteHeader(http.StatusServiceUnavailable)
				},
				"http://b.example/2": document(prev("http://b.example/1"), "2"),
				"http://b.example/1": document("", "1"),
			}}
			_, _ = newMirror(&crashing{Store: store, left: commits}, slowly(h)).Update(t.Context(), aURL)
			f, err := store.Feed(t.Context(), aURL)
			if err == nil && f.Unfinished && f.Waits(time.Now()) {
				asked++
				wait := time.Until(f.Wait)
				polled := untilPolled(t, f, time.Hour)
				require.GreaterOrEqual(t, polled, wait, "%+v", f)
				require.Less(t, polled, wait+2*time.Minute, "%+v", f)
			}
		})
	}
	require.Positive(t, asked)
}

// After a spent budget the next poll goes on. The feed is due at once for
// programs that look, and after minutes for programs that keep polling, unless
// the poll brought nothing.
func TestSpentBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, h := mirror.NewMemory(), archives()
		poll := func(budget int) (f *mirror.Feed) {
			m := newMirror(store, h)
			m.Client.Budget.Documents = budget
			_, err := m.Update(t.Context(), aURL)
			require.NoError(t, err)
			return feedOf(t, store, aURL)
		}
		for range 2 {
			f := poll(2)
			require.True(t, f.More)
			require.True(t, f.Due(time.Now()))
			require.Empty(t, due(t, store))
			require.Equal(t, 5*time.Minute, time.Until(f.Next))
		}
		f := poll(1) // enough for the subscription document only, each time
		require.True(t, f.More)
		require.Equal(t, time.Hour, time.Until(f.Next))
		f = poll(2)
		require.False(t, f.More)
		require.False(t, f.Due(time.Now()))
		require.Equal(t, feedhistory.VerdictWhole, f.Verdict)
	})
}

// A host that asks to be left alone is left alone by all who share the store:
// also if an archive's answer asks, and if the walk is interrupted.
func TestRetryAfterIsKept(t *testing.T) {
	waits := func(t *testing.T, store mirror.Store, h *host, wait time.Duration) {
		t.Helper()
		f := feedOf(t, store, aURL)
		require.Equal(t, wait, time.Until(f.Wait))
		require.False(t, f.Due(time.Now()))
		require.Empty(t, due(t, store))
		h.requests()
		m := newMirror(store, h)
		m.Revalidate = true
		changes, err := m.Update(t.Context(), aURL)
		require.NoError(t, err)
		require.ErrorIs(t, changes.Failure, mirror.ErrWaits)
		require.Equal(t, wait, time.Until(changes.Feed.Wait))
		require.Equal(t, f.Verdict, changes.Feed.Verdict)
		require.Empty(t, h.requests())
		require.Equal(t, f, feedOf(t, store, aURL))
		time.Sleep(wait)
		require.True(t, feedOf(t, store, aURL).Due(time.Now()))
	}
	t.Run("subscription document", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store, h := mirror.NewMemory(), &host{answer: map[string]http.HandlerFunc{aURL: leaveAlone("7200")}}
			failed, err := newMirror(store, h).Update(t.Context(), aURL)
			require.NoError(t, err)
			require.Error(t, failed.Failure)
			waits(t, store, h, 2*time.Hour)
			h.answer[aURL] = document("", "1")
			changes := polled(t, newMirror(store, h), aURL)
			require.Equal(t, 1, changes.Added)
			require.Zero(t, feedOf(t, store, aURL).Wait)
		})
	})
	t.Run("archive", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store, h := mirror.NewMemory(), archives()
			h.answer["http://a.example/3"] = leaveAlone("7200")
			changes := polled(t, newMirror(store, h), aURL)
			require.Equal(t, 2*time.Hour, time.Until(changes.Feed.Next))
			waits(t, store, h, 2*time.Hour)
		})
	})
	t.Run("interrupted", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store, h := mirror.NewMemory(), archives()
			h.answer["http://a.example/3"] = leaveAlone("7200")
			ctx, cancel := context.WithCancel(t.Context())
			_, err := newMirror(&crashing{Store: store, left: 1, then: cancel}, h).Update(ctx, aURL)
			require.ErrorIs(t, err, context.Canceled)
			waits(t, store, h, 2*time.Hour)
		})
	})
	t.Run("another host", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store, h := mirror.NewMemory(), archives()
			h.answer["http://a.example/2"] = document(prev("http://b.example/1"), "2")
			h.answer["http://b.example/1"] = leaveAlone("7200")
			for range 3 { // the other documents are requested, the archive is not
				_, err := newMirror(store, h).Update(t.Context(), aURL)
				require.NoError(t, err)
				f := feedOf(t, store, aURL)
				require.Zero(t, f.Wait)
				require.Equal(t, 2*time.Hour, time.Until(f.Ledger.Debts()[0].Retry).Round(time.Hour))
				require.Equal(t, feedhistory.VerdictPartial, f.Verdict)
				time.Sleep(time.Minute)
			}
			asked := h.requests()
			require.Len(t, asked, 6)
			require.NotContains(t, asked[4:], "http://b.example/1")
			h.answer["http://b.example/1"] = document("", "1")
			time.Sleep(2 * time.Hour)
			changes := polled(t, newMirror(store, h), aURL)
			require.Equal(t, feedhistory.VerdictWhole, changes.Feed.Verdict)
		})
	})
}

// eachDebt calls a function with each debt of a Ledger as it is stored, and stores its changes.
func eachDebt(t *testing.T, l *mirror.Ledger, change func(debt map[string]any)) {
	text, err := json.Marshal(l)
	require.NoError(t, err)
	var stored map[string]any
	require.NoError(t, json.Unmarshal(text, &stored))
	for _, d := range stored["debts"].([]any) {
		change(d.(map[string]any))
	}
	text, err = json.Marshal(stored)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, l))
}

// A clock that was wrong and has been set back neither silences a feed nor
// leaves it partial for ever.
func TestClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		for _, f := range []*mirror.Feed{
			{Polled: now.AddDate(1, 0, 0), Next: now.AddDate(1, 0, 1)},
			{Wait: now.AddDate(1, 0, 0)},
			{Unfinished: true, Next: now.AddDate(1, 0, 0)},
		} {
			f.URL = aURL
			require.True(t, f.Due(now))
			require.False(t, isLeft(t, f))
		}
		require.False(t, (&mirror.Feed{Polled: now.Add(time.Minute), Next: now.Add(time.Hour)}).Due(now))

		store, h := mirror.NewMemory(), archives()
		h.answer["http://a.example/3"] = http.NotFound
		_, err := newMirror(store, h).Update(t.Context(), aURL)
		require.NoError(t, err)
		f := feedOf(t, store, aURL)
		f.Wait = now.AddDate(1, 0, 0)
		eachDebt(t, &f.Ledger, func(d map[string]any) {
			d["tries"], d["retry"], d["found"] = 9, now.AddDate(1, 0, 0), now.AddDate(1, 0, 0)
		})
		f.Ledger.Add(&feedhistory.Gap{URL: "old", From: aURL, Reason: feedhistory.ReasonNetwork, Err: errors.New("old"), Found: now.AddDate(1, 0, 0)})
		require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: f}))
		changes := polled(t, newMirror(store, archives()), aURL)
		require.Empty(t, changes.Feed.Ledger.Gaps())
		require.Equal(t, feedhistory.VerdictWhole, changes.Feed.Verdict)
	})
}

// A feed that permanently redirects to a mirrored feed becomes its alias: it is
// no longer due, and keeps its entries, until the other feed is removed.
func TestAlias(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, h := mirror.NewMemory(), &host{answer: map[string]http.HandlerFunc{aURL: document("", "1"), bURL: document("", "2")}}
		update := func(url string) *mirror.Report {
			t.Helper()
			time.Sleep(time.Hour)
			changes := polled(t, newMirror(store, h), url)
			return changes
		}
		update(aURL)
		update(bURL)
		h.answer[aURL] = redirect(bURL)
		require.Equal(t, bURL, update(aURL).Feed.Alias)
		f := feedOf(t, store, aURL)
		require.Equal(t, bURL, f.Alias)
		require.Len(t, held(t, store, aURL), 1)
		time.Sleep(24 * time.Hour)
		require.False(t, f.Due(time.Now()))
		require.Equal(t, []string{bURL}, due(t, store))

		// A feed does not become the alias of its own alias.
		h.answer[aURL], h.answer[bURL] = document("", "3"), redirect(aURL)
		changes := update(bURL)
		require.Empty(t, changes.Feed.Alias)
		require.Equal(t, aURL, changes.Moved)
		require.Equal(t, 1, changes.Added)

		// Polled by name, the feed is polled itself again.
		require.Empty(t, update(aURL).Feed.Alias)
		require.Empty(t, feedOf(t, store, aURL).Alias)
		require.Equal(t, []string{bURL}, due(t, store), "which is where the first one is now")
		require.Equal(t, aURL, update(bURL).Feed.Alias, "without a request")

		// The target of the alias is removed.
		require.NoError(t, store.Remove(t.Context(), aURL))
		require.Empty(t, update(bURL).Feed.Alias)
		require.Contains(t, held(t, store, bURL), "3")
	})
}

// A feed that has failed recently is not the target of an alias.
func TestNoAliasOfWhatFails(t *testing.T) {
	for name, other := range map[string]*mirror.Feed{
		"gone":    {URL: bURL, Gone: true},
		"failing": {URL: bURL, Failures: 3},
		"alias":   {URL: bURL, Alias: "http://c.example/"},
	} {
		store := mirror.NewMemory()
		require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: other}))
		h := &host{answer: map[string]http.HandlerFunc{aURL: redirect(bURL), bURL: document("", "1")}}
		changes := polled(t, newMirror(store, h), aURL)
		require.Empty(t, changes.Feed.Alias, name)
		require.Len(t, held(t, store, aURL), 1)
	}
}

// Feeds of one host are polled one at a time. The host does not depend on the scheme, the
// letters' case or the path. A different port is a different host.
func TestHost(t *testing.T) {
	for _, tc := range []struct {
		one, other string
		same       bool
	}{
		{"https://Example.ORG/feed", "http://example.org/", true},
		{"http://example.org:80/100%/feed", "https://example.org.:443/", true},
		{"http://example.org:8080/", "http://example.org/", false},
		{"http://example.org:8080/", "https://example.org:8080/feed", true},
		{"http://[::1]:8080/", "http://[::1]:8080/feed", true},
		{"http://[::1]:8080/", "http://[::1]:8081/", false},
		{"not a URL", "not a URL either", false},
	} {
		for _, feeds := range [][]*mirror.Feed{
			{{URL: tc.one}, {URL: tc.other}},
			{{URL: "http://old.example/1", Address: tc.one}, {URL: "http://old.example/2", Address: tc.other}},
			{{URL: tc.one}, {URL: "http://old.example/2", Address: tc.other}},
		} {
			synctest.Test(t, func(t *testing.T) {
				p, log := newPoller(t, feeds...)
				_, err := p.AddAll(t.Context(), nil)
				require.NoError(t, err)
				require.NoError(t, p.Drain(t.Context()))
				require.Len(t, log.order, 2)
				require.Equal(t, tc.same, !strings.HasSuffix(log.order[1], " 0s"), "%v", log.order)
			})
		}
	}
}
