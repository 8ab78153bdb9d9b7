package republish

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// documents makes documents of many entries while it sends them.
type documents struct {
	store  mirror.Store
	base   string
	logger *slog.Logger
	sizes  sizes
	plans  publish.Cache[string, Plan]
	losses publish.Cache[string, loss] // by the feed's URL
	slots  slots
}

// serveComplete answers with all entries of a feed in one document, newest
// first. The document is marked as complete if the mirror is whole (5005#2).
func (h *Handler) serveComplete(w http.ResponseWriter, r *http.Request, asked request) error {
	return h.documents.serve(w, r, &part{
		feed: asked.feed, format: feedhistory.Atom, self: h.base() + "feeds/" + asked.name + "/complete.atom",
		query: mirror.Query{Feed: asked.feed.URL},
	})
}

// A part is the part of a feed in a document; it may be all of it.
type part struct {
	feed   *mirror.Feed
	format feedhistory.Format
	self   string // the URL of the document
	title  string // added to the feed's title; "" for the whole feed
	query  mirror.Query
}

// serve answers with a part of a feed.
func (d *documents) serve(w http.ResponseWriter, r *http.Request, p *part) error {
	ctx, lost := r.Context(), d.lost(p.feed)
	var doc *feedhistory.Document
	var m *source
	out := &stream{
		tag: tagOf(d.base, p.feed, p.self+"\n"+strings.Join(lost.ids, "\n")), mediaType: mediaTypeOf(p.format), cache: "no-cache", slots: d.slots,
		prepare: func() (err error) {
			if m, err = d.source(p); err == nil {
				doc, err = d.document(ctx, p, lost)
			}
			return err
		},
		write:     func(w io.Writer) error { return d.write(ctx, w, m, p, doc, lost) },
		unchanged: func() bool { return d.isVersion(ctx, p.feed) },
	}
	return out.deliver(w, r, &d.sizes)
}

func (d *documents) source(p *part) (*source, error) {
	head, err := heading(p.feed, p.format, nil)
	if err != nil {
		return nil, err
	}
	return newSource(p.feed, head, p.format), nil
}

// isVersion reports whether a feed is still in the same state.
func (d *documents) isVersion(ctx context.Context, feed *mirror.Feed) bool {
	now, err := d.store.Feed(ctx, feed.URL)
	return err == nil && now.Commits == feed.Commits
}

// write writes a document with the entries of a part. If an entry cannot be
// read, the document breaks off; the next one names the gap.
func (d *documents) write(ctx context.Context, w io.Writer, m *source, p *part, doc *feedhistory.Document, lost loss) error {
	out := bufio.NewWriterSize(w, 64<<10)
	feed := feedhistory.NewWriter(out, p.format, doc)
	for record, err := range d.store.Entries(ctx, p.query) {
		if err != nil {
			d.logger.ErrorContext(ctx, "a document was cut short", "feed", p.feed.URL, "err", err)
			return err
		}
		if lost.has(record.ID) {
			continue
		}
		e, err := m.entry(record)
		if err != nil {
			d.logger.ErrorContext(ctx, "an entry cannot be published", "feed", p.feed.URL, "entry", record.ID, "err", err)
			return errors.Join(err, d.recordLoss(ctx, p.feed))
		}
		if err := feed.Add(e); err != nil {
			return err // the client has gone
		}
	}
	if err := feed.Close(); err != nil {
		return err
	}
	return out.Flush()
}

// document returns a document without its entries.
func (d *documents) document(ctx context.Context, p *part, lost loss) (*feedhistory.Document, error) {
	head, err := heading(p.feed, p.format, coverageOf(p.feed, lost))
	if err != nil {
		return nil, err
	}
	doc := feedhistory.NewComplete(head, nil, p.self)
	doc.Complete = head.Coverage.Verdict == feedhistory.Whole
	newest, err := newestOf(ctx, d.store, p.feed.URL, time.Time{})
	if err != nil {
		return nil, err
	}
	doc.Updated = slices.MaxFunc([]time.Time{time.Unix(0, 0), p.feed.Changed, newest}, time.Time.Compare).UTC()
	if p.title != "" {
		doc.ID = p.self
		doc.Title += ", " + p.title
	}
	gaps := head.Coverage.Gaps
	if p.title != "" {
		gaps = lost.gaps(p.feed) // only the whole document reports the gaps of the feed
	}
	for _, gap := range gaps {
		e := gap.PseudoEntry()
		doc.Entries = append(doc.Entries, e)
		if e.Updated.After(doc.Updated) {
			doc.Updated = e.Updated.UTC()
		}
	}
	return doc, nil
}

// newestOf returns the time of the newest entry of a feed before a time, or of
// all if the time is zero; the zero time if there is none.
func newestOf(ctx context.Context, s mirror.Store, feed string, before time.Time) (time.Time, error) {
	for r, err := range s.Entries(ctx, mirror.Query{Feed: feed, Until: before, Limit: 1}) {
		if err != nil {
			return time.Time{}, err
		}
		return r.Time(), nil
	}
	return time.Time{}, nil
}
