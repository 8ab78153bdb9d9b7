// Package demo is a small website with a feed of each kind of RFC 5005: archived, paged and
// complete. It needs no network, so anybody can try the command within a minute.
package demo

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/publish"
)

// The feeds, as paths on the site.
const (
	Archived = "/fables.atom"   // 40 entries: a subscription document and archives of ten
	Paged    = "/elements.atom" // 30 entries, ten a page
	Complete = "/planets.rss"   // 8 entries, all in one document
)

// Feeds are the paths of all feeds.
var Feeds = []string{Archived, Paged, Complete}

var (
	//go:embed fables.txt
	fables string
	//go:embed elements.txt
	elements string
	//go:embed planets.txt
	planets string
)

// first is the time of the first entry of each feed; another follows each week.
var first = time.Date(2025, 1, 5, 9, 0, 0, 0, time.UTC)

// New returns the site. Base is the URL under which it is served, without a slash at its
// end: the documents link to one another by it.
func New(ctx context.Context, base string) (http.Handler, error) {
	mux := http.NewServeMux()
	archived, err := archivedFeed(ctx, base)
	if err != nil {
		return nil, err
	}
	mux.Handle("/", archived)
	if err := pages(mux, base); err != nil {
		return nil, err
	}
	head, entries, err := feed(base+Complete, "The planets", planets)
	if err != nil {
		return nil, err
	}
	return mux, serve(mux, Complete, "application/rss+xml", feedhistory.RSS, feedhistory.NewComplete(head, entries, base+Complete))
}

// archivedFeed publishes the fables, ten to an archive.
func archivedFeed(ctx context.Context, base string) (http.Handler, error) {
	head, entries, err := feed(base+Archived, "Aesop’s fables, one a week", fables)
	if err != nil {
		return nil, err
	}
	output := new(publish.MemoryOutput)
	p := &publish.Publisher{
		Output: output, Base: base + "/", Head: head, Name: strings.TrimPrefix(Archived, "/"), Split: feedhistory.Split{Size: 10},
	}
	if _, err := p.Publish(ctx, publish.Batch{Entries: entries, Now: entries[0].Updated}); err != nil {
		return nil, err
	}
	return &publish.Handler{FS: output}, nil
}

// pages serves the elements as a paged feed: the first page at its address, the others
// with a query.
func pages(mux *http.ServeMux, base string) error {
	head, entries, err := feed(base+Paged, "The first thirty elements", elements)
	if err != nil {
		return err
	}
	documents := map[string][]byte{}
	for i, page := range feedhistory.NewPages(head, entries, 10, func(n int) string { return pageURL(base, n) }) {
		var b bytes.Buffer
		if err := feedhistory.WriteAtom(&b, page); err != nil {
			return err
		}
		documents[strings.TrimPrefix(pageURL(base, i+1), base)] = b.Bytes()
	}
	mux.HandleFunc(Paged, func(w http.ResponseWriter, r *http.Request) {
		document, found := documents[r.URL.RequestURI()]
		if !found {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/atom+xml")
		http.ServeContent(w, r, "", entries[0].Updated, bytes.NewReader(document))
	})
	return nil
}

func pageURL(base string, n int) string {
	if n == 1 {
		return base + Paged
	}
	return fmt.Sprintf("%s%s?page=%d", base, Paged, n)
}

// serve adds a document to the site.
func serve(mux *http.ServeMux, path, mediaType string, format feedhistory.Format, doc *feedhistory.Document) error {
	var b bytes.Buffer
	if err := feedhistory.NewWriter(&b, format, doc).Close(); err != nil {
		return err
	}
	mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		http.ServeContent(w, r, "", doc.Updated, bytes.NewReader(b.Bytes()))
	})
	return nil
}

// feed returns the head and the entries, newest first, of a text with an entry a line:
// title | text, or title | text | moral.
func feed(url, title, text string) (*feedhistory.Document, []*feedhistory.Entry, error) {
	head := &feedhistory.Document{ID: url, Title: title, Authors: []feedhistory.Person{{Name: "feedhistory’s demo"}}}
	var entries []*feedhistory.Entry
	for line := range strings.Lines(text) {
		title, rest, _ := strings.Cut(strings.TrimSpace(line), " | ")
		body, moral, hasMoral := strings.Cut(rest, " | ")
		html := "<p>" + body + "</p>"
		if hasMoral {
			html += "<p><em>" + moral + "</em></p>"
		}
		at := first.AddDate(0, 0, 7*len(entries))
		entry, err := feedhistory.Draft{
			ID: fmt.Sprintf("%s#%d", url, len(entries)+1), Title: feedhistory.Text{Body: title}, Published: at, Updated: at,
			Content: feedhistory.Text{Type: feedhistory.TextHTML, Body: html},
		}.Entry()
		if err != nil {
			return nil, nil, err
		}
		entries = append([]*feedhistory.Entry{entry}, entries...)
	}
	head.Updated = entries[0].Updated
	return head, entries, nil
}
