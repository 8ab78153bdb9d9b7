package web

import (
	"encoding/xml"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/check"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// reader returns another instance of the library.
func reader() *feedhistory.Client {
	return &feedhistory.Client{Policy: feedhistory.Policy{AllowPrivate: true}}
}

// mirrored returns the ids of the entries the mirror has of a feed.
func (w *world) mirrored(feed string) (ids []string) {
	for r, err := range w.Store.Entries(w.t.Context(), mirror.Query{Feed: feed}) {
		require.NoError(w.t, err)
		ids = append(ids, r.ID)
	}
	return ids
}

// checked requires that the checks find nothing in a chain, with one exception:
// an entry must keep its identity, even if its RSS guid is not a valid Atom id
// (RFC 4287 §4.2.6).
func (w *world) checked(path string) {
	w.t.Helper()
	var chain check.Chain
	for finding, err := range chain.Walk(w.t.Context(), reader(), strings.TrimSuffix(w.url, "/")+path) {
		require.NoError(w.t, err)
		if finding.Level > check.Note && (finding.Code != "not-absolute-iri" || !strings.Contains(finding.Message, "harbour-") && !strings.Contains(finding.Message, "pod-")) {
			w.t.Errorf("%s: %v", path, finding)
		}
	}
}

// requireWellFormed checks a document with a different parser.
func requireWellFormed(t require.TestingT, text string) {
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			require.NoError(t, err, text)
		}
	}
}

// two addresses whose names began with the same 48 bits when names were shorter
const (
	oneURL   = "https://c.example/8979788"
	otherURL = "https://c.example/32758410"
)

// A feed's page moves from its old name to its name. A feed that would take the
// name of another is refused.
func TestNames(t *testing.T) {
	store := &mirror.Memory{}
	feed := &mirror.Feed{
		URL: oneURL, Title: "Feed " + path.Base(oneURL), Kind: feedhistory.Plain, Known: feedhistory.Known{URL: oneURL},
		Head: `<feed xmlns="http://www.w3.org/2005/Atom"><id>` + oneURL + `</id><title>Feed</title><updated>2026-01-01T00:00:00Z</updated></feed>`,
	}
	require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: feed}))
	s := &Server{Store: store}
	old := republish.Name(oneURL)[:12]
	for asked, want := range map[string]string{
		"?q=a+b": "?q=a+b", "/entry?id=x%26y": "/entry?id=x%26y", "/complete.atom": "/complete.atom",
	} {
		status, _, header := answer(t, s, httptestRequest(t.Context(), http.MethodGet, "/feeds/"+old+asked, nil))
		require.Equal(t, http.StatusPermanentRedirect, status)
		require.Equal(t, "/feeds/"+republish.Name(oneURL)+want, header.Get("Location"))
	}
	form := strings.NewReader(url.Values{"url": {otherURL}}.Encode())
	r := httptestRequest(t.Context(), http.MethodPost, "/feeds", form)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	status, body, _ := answer(t, s, r)
	require.Equal(t, http.StatusConflict, status)
	require.Contains(t, body, "Another feed has this feed’s name")
	_, err := store.Feed(t.Context(), otherURL)
	require.ErrorIs(t, err, mirror.ErrNotFound)
}
