package web

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// serveComplete answers with all entries of a feed in one document, newest
// first. The document is marked as complete if the mirror is whole (5005#2).
func (s *Server) serveComplete(w http.ResponseWriter, r *http.Request) error {
	feed, name, err := s.toPublish(r)
	if err != nil {
		return err
	}
	part := &part{feed: feed, format: feedhistory.Atom, self: s.base() + "feeds/" + name + "/complete.atom", query: mirror.Query{Feed: feed.URL}}
	return s.servePart(w, r, part)
}

// A part is the part of a feed that a document contains; it may be all of it.
type part struct {
	feed   *mirror.Feed
	format feedhistory.Format
	self   string // the URL of the document
	title  string // added to the feed's title; "" for the whole feed
	query  mirror.Query
}

// servePart answers with a part of a feed.
func (s *Server) servePart(w http.ResponseWriter, r *http.Request, p *part) error {
	before, after, err := s.partHead(r.Context(), p)
	if err != nil {
		return err
	}
	head, err := heading(p.feed, p.format, false)
	if err != nil {
		return err
	}
	m := newSource(p.feed, head, p.format)
	doc := &stream{
		tag: s.tagOf(p.feed, p.self), mediaType: mediaTypeOf(p.format),
		write: func(w io.Writer) error {
			out := bufio.NewWriterSize(w, 64<<10)
			_, _ = out.WriteString(before)
			if err := s.writeEntries(r.Context(), out, m, p.query); err != nil {
				return err
			}
			_, _ = out.WriteString(after)
			return out.Flush()
		},
		unchanged: func() bool { return s.isVersion(r.Context(), p.feed) },
	}
	doc.deliver(w, r, &s.sizes)
	return nil
}

func mediaTypeOf(format feedhistory.Format) string {
	if format == feedhistory.RSS {
		return "application/rss+xml; charset=utf-8"
	}
	return "application/atom+xml; charset=utf-8"
}

// tagOf returns the ETag of a document that is made from the present state of a
// feed.
func (s *Server) tagOf(feed *mirror.Feed, document string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%s\n%s\n%s", feedhistory.Version, s.base(), feed.URL, document, stateOf(feed)))
	return hex.EncodeToString(sum[:10])
}

// stateOf names the state of a feed. The version alone is not enough, because a
// feed that is removed and added again begins with version one.
func stateOf(feed *mirror.Feed) string { return fmt.Sprint(feed.Version, " ", feed.Changed.UnixNano()) }

// isVersion reports whether a feed is still in the same state.
func (s *Server) isVersion(ctx context.Context, feed *mirror.Feed) bool {
	now, err := s.store.Feed(ctx, feed.URL)
	return err == nil && now.Version == feed.Version
}

// writeEntries writes the entries of a query in the form in which they are
// published again.
func (s *Server) writeEntries(ctx context.Context, w *bufio.Writer, m *source, q mirror.Query) error {
	for record, err := range s.store.Entries(ctx, q) {
		if err != nil {
			s.Logger.ErrorContext(ctx, "a document was cut short", "feed", q.Feed, "err", err)
			return err
		}
		e, err := m.entry(record)
		if err != nil {
			s.Logger.ErrorContext(ctx, "an entry cannot be published", "feed", q.Feed, "entry", record.ID, "err", err)
			continue
		}
		if _, err := w.Write(append(e.XML(), '\n')); err != nil {
			return err // the client has gone
		}
	}
	return nil
}

// partHead returns the beginning and the end of the document, around the
// entries.
func (s *Server) partHead(ctx context.Context, p *part) (before, after string, err error) {
	feed := p.feed
	head, err := heading(feed, p.format, true)
	if err != nil {
		return "", "", err
	}
	d := feedhistory.NewComplete(head, nil, p.self)
	d.Complete = feed.Verdict == feedhistory.Whole
	f, err := s.feeds.figuresOf(ctx, feed)
	if err != nil {
		return "", "", err
	}
	d.Updated = slices.MaxFunc([]time.Time{time.Unix(0, 0), feed.Changed, f.newest}, time.Time.Compare).UTC()
	if p.title != "" {
		d.ID = p.self
		d.Title += ", " + p.title
	}
	for _, gap := range feed.Missing() {
		if p.title != "" {
			break // only the whole document reports what is missing
		}
		e := gap.PseudoEntry()
		d.Entries = append(d.Entries, e)
		if e.Updated.After(d.Updated) {
			d.Updated = e.Updated.UTC()
		}
	}
	write, end := feedhistory.WriteAtom, "</feed>"
	if p.format == feedhistory.RSS {
		write, end = feedhistory.WriteRSS, "</channel>"
	}
	var b strings.Builder
	if err := write(&b, d); err != nil {
		return "", "", err
	}
	text := b.String()
	at := strings.LastIndex(text, end)
	return text[:at], text[at:], nil
}
