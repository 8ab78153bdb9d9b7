package harvest_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/harvest/atompmh"
)

// Atom-PMH is for feeds in Atom.
func ExampleError() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `<rss version="2.0"><channel><title>News</title></channel></rss>`)
	}))
	defer server.Close()
	h := atompmh.Harvester{URL: server.URL, HTTP: &feedhistory.Client{AllowPrivate: true}}
	defer h.HTTP.CloseIdle()
	for _, err := range h.Harvest(context.Background(), atompmh.Mark{}).Changes() {
		if e, ok := errors.AsType[*harvest.Error](err); ok && errors.Is(err, harvest.ErrFormat) {
			fmt.Println(e.Code, e.Detail())
		}
	}
	// Output: format this is rss, not Atom (atom-pmh#3)
}

// The gap of an error has the reason of its code, or else of its cause; the error's text has the
// clause, and of a page the page that leads to it.
func TestError(t *testing.T) {
	gone := &feedhistory.FetchError{Reason: feedhistory.ReasonStatus, URL: "https://x/1", Status: http.StatusGone}
	for _, test := range []struct {
		err    error
		reason feedhistory.Reason
		text   string
	}{
		{&harvest.Error{Code: harvest.ErrLoop, URL: "https://x/", Text: "a loop", Clause: "c#1"}, feedhistory.ReasonLoop, "https://x/: a loop (c#1)"},
		{&harvest.Error{Code: harvest.ErrStuck, URL: "https://x/", Text: "stuck", Clause: "c#2"}, feedhistory.ReasonBarren, "https://x/: stuck (c#2)"},
		{
			fmt.Errorf("wrapped: %w", &harvest.Error{Code: harvest.ErrPage, URL: "https://x/1", From: "https://x/2", Err: gone, Clause: "c#3"}), feedhistory.ReasonStatus,
			"wrapped: https://x/1, to which https://x/2 leads: " + gone.Error() + " (c#3)",
		},
		{&harvest.Error{Code: harvest.ErrSnapshot, URL: "https://x/1", Err: gone, Clause: "c#3"}, feedhistory.ReasonStatus, "https://x/1: " + gone.Error() + " (c#3)"},
		{gone, feedhistory.ReasonStatus, gone.Error()},
	} {
		require.Equal(t, test.reason, harvest.NewGap("https://x/", test.err).Reason)
		require.EqualError(t, test.err, test.text)
		e, ok := errors.AsType[*harvest.Error](test.err)
		if !ok {
			continue
		}
		require.ErrorIs(t, test.err, e.Code)
		require.NotErrorIs(t, test.err, harvest.ErrBudget)
		require.Equal(t, e.Err != nil, errors.Is(test.err, gone))
	}
}
