package web

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// serveComplete answers with all entries of a feed in one document, the newest
// first. It is marked as complete where the mirror is whole (5005#2).
func (s *Server) serveComplete(w http.ResponseWriter, r *http.Request) error {
	feed, name, err := s.toPublish(r)
	if err != nil {
		return err
	}
	tag := fmt.Sprintf(`"%s-%d"`, name, feed.Version)
	h := w.Header()
	h.Set("Etag", tag)
	h.Set("Cache-Control", "no-cache")
	if strings.Contains(r.Header.Get("If-None-Match"), tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	before, after, err := s.completeHead(r.Context(), feed, name)
	if err != nil {
		return err
	}
	h.Set("Content-Type", "application/atom+xml; charset=utf-8")
	h.Set("Content-Security-Policy", documentPolicy)
	out := bufio.NewWriterSize(w, 64<<10)
	_, _ = out.WriteString(before)
	head, err := heading(feed, feedhistory.Atom, false)
	if err == nil {
		m := newMaterial(feed, head, feedhistory.Atom)
		for record, err := range s.Store.Entries(r.Context(), mirror.Query{Feed: feed.URL}) {
			if err != nil {
				s.Logger.ErrorContext(r.Context(), "a document breaks off", "feed", feed.URL, "err", err)
				panic(http.ErrAbortHandler) // readers can tell (RFC 9112 §8)
			}
			e, err := m.entry(record)
			if err != nil {
				s.Logger.ErrorContext(r.Context(), "an entry cannot be published", "feed", feed.URL, "entry", record.ID, "err", err)
				continue
			}
			_, _ = out.Write(append(e.XML(), '\n'))
		}
	}
	_, _ = out.WriteString(after)
	_ = out.Flush()
	return nil
}

// completeHead returns what comes before and after the entries.
func (s *Server) completeHead(ctx context.Context, feed *mirror.Feed, name string) (before, after string, err error) {
	head, err := heading(feed, feedhistory.Atom, true)
	if err != nil {
		return "", "", err
	}
	self := s.base() + "feeds/" + name + "/complete.atom"
	d := feedhistory.NewComplete(head, nil, self)
	d.Complete = feed.Verdict == feedhistory.Whole
	f, err := s.feeds.figuresOf(ctx, feed)
	if err != nil {
		return "", "", err
	}
	d.Updated = slices.MaxFunc([]time.Time{time.Unix(0, 0), feed.Changed, f.newest}, time.Time.Compare).UTC()
	for _, gap := range feed.Missing() {
		e := gap.PseudoEntry()
		d.Entries = append(d.Entries, e)
		if e.Updated.After(d.Updated) {
			d.Updated = e.Updated.UTC()
		}
	}
	var b strings.Builder
	if err := feedhistory.WriteAtom(&b, d); err != nil {
		return "", "", err
	}
	text := b.String()
	at := strings.LastIndex(text, "</feed>")
	return text[:at], text[at:], nil
}
