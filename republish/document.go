package republish

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// documents makes documents of many entries while it sends them.
type documents struct {
	store  mirror.Store
	base   string
	logger *slog.Logger
	sizes  sizes
	plans  cache[string, Plan]
}

// serveComplete answers with all entries of a feed in one document, newest
// first. The document is marked as complete if the mirror is whole (5005#2).
func (h *Handler) serveComplete(w http.ResponseWriter, r *http.Request, asked request) error {
	return h.documents.serve(w, r, &part{
		feed: asked.feed, format: feedhistory.Atom, self: h.base() + "feeds/" + asked.name + "/complete.atom",
		query: mirror.Query{Feed: asked.feed.URL},
	})
}

// A part is the part of a feed that a document contains; it may be all of it.
type part struct {
	feed   *mirror.Feed
	format feedhistory.Format
	self   string // the URL of the document
	title  string // added to the feed's title; "" for the whole feed
	query  mirror.Query
}

// serve answers with a part of a feed.
func (d *documents) serve(w http.ResponseWriter, r *http.Request, p *part) error {
	var before, after string
	var m *source
	doc := &stream{
		tag: tagOf(d.base, p.feed, p.self), mediaType: mediaTypeOf(p.format), cache: "no-cache",
		prepare: func() error {
			head, err := heading(p.feed, p.format, false)
			if err != nil {
				return err
			}
			m = newSource(p.feed, head, p.format)
			before, after, err = d.frame(r.Context(), p)
			return err
		},
		write: func(w io.Writer) error {
			out := bufio.NewWriterSize(w, 64<<10)
			_, _ = out.WriteString(before)
			if err := d.writeEntries(r.Context(), out, m, p.query); err != nil {
				return err
			}
			_, _ = out.WriteString(after)
			return out.Flush()
		},
		unchanged: func() bool { return d.isVersion(r.Context(), p.feed) },
	}
	return doc.deliver(w, r, &d.sizes)
}

// isVersion reports whether a feed is still in the same state.
func (d *documents) isVersion(ctx context.Context, feed *mirror.Feed) bool {
	now, err := d.store.Feed(ctx, feed.URL)
	return err == nil && now.Version == feed.Version
}

// writeEntries writes the entries of a query in the form in which they are
// published again.
func (d *documents) writeEntries(ctx context.Context, w *bufio.Writer, m *source, q mirror.Query) error {
	for record, err := range d.store.Entries(ctx, q) {
		if err != nil {
			d.logger.ErrorContext(ctx, "a document was cut short", "feed", q.Feed, "err", err)
			return err
		}
		e, err := m.entry(record)
		if err != nil {
			d.logger.ErrorContext(ctx, "an entry cannot be published", "feed", q.Feed, "entry", record.ID, "err", err)
			continue
		}
		if _, err := w.Write(append(e.XML(), '\n')); err != nil {
			return err // the client has gone
		}
	}
	return nil
}

// frame returns the beginning and the end of a document, around its entries.
func (d *documents) frame(ctx context.Context, p *part) (before, after string, err error) {
	feed := p.feed
	head, err := heading(feed, p.format, true)
	if err != nil {
		return "", "", err
	}
	doc := feedhistory.NewComplete(head, nil, p.self)
	doc.Complete = feed.Verdict == feedhistory.Whole
	newest, err := newestOf(ctx, d.store, feed.URL, time.Time{})
	if err != nil {
		return "", "", err
	}
	doc.Updated = slices.MaxFunc([]time.Time{time.Unix(0, 0), feed.Changed, newest}, time.Time.Compare).UTC()
	if p.title != "" {
		doc.ID = p.self
		doc.Title += ", " + p.title
	}
	for _, gap := range feed.Missing() {
		if p.title != "" {
			break // only the whole document reports what is missing
		}
		e := gap.PseudoEntry()
		doc.Entries = append(doc.Entries, e)
		if e.Updated.After(doc.Updated) {
			doc.Updated = e.Updated.UTC()
		}
	}
	end := "</feed>"
	if p.format == feedhistory.RSS {
		end = "</channel>"
	}
	var b bytes.Buffer
	if err := write(&b, doc, p.format); err != nil {
		return "", "", err
	}
	at := bytes.LastIndex(b.Bytes(), []byte(end))
	return string(b.Bytes()[:at]), string(b.Bytes()[at:]), nil
}

// newestOf returns the time of the newest entry of a feed before a time, or of
// all if that is zero; the zero time if there is none.
func newestOf(ctx context.Context, s mirror.Store, feed string, before time.Time) (time.Time, error) {
	for r, err := range s.Entries(ctx, mirror.Query{Feed: feed, Until: before, Limit: 1}) {
		if err != nil {
			return time.Time{}, err
		}
		return r.Time(), nil
	}
	return time.Time{}, nil
}
