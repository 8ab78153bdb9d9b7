package check

import (
	"context"
	"errors"
	"iter"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/plain"
)

// Walk checks every document of the feed at url, and yields the findings as the
// documents come. The error is the context's, or the reason the first document could
// not be retrieved; it ends the sequence. Every other failure is a finding. With the
// profile DataReplication, Walk checks pages of entities, and requests each by HEAD and
// GET. A nil client means one with default settings.
func (c *Chain) Walk(ctx context.Context, client *feedhistory.Client, url string) iter.Seq2[Finding, error] {
	return func(yield func(Finding, error) bool) {
		client, done := plain.Or(client)
		defer done()
		if c.Profile == DataReplication {
			c.walkPages(ctx, client, url)(yield)
			return
		}
		w := walker{Chain: c, ctx: ctx, client: client}
		w.yield = func(found []Finding) bool {
			for _, f := range found {
				if !yield(f, nil) {
					return false
				}
			}
			return true
		}
		if err := w.run(url); err != nil {
			yield(Finding{}, err)
		}
	}
}

// A walker checks one chain.
type walker struct {
	*Chain
	ctx    context.Context
	client *feedhistory.Client
	yield  func([]Finding) bool
	given  *feedhistory.Gap      // the feed does not begin with the first document
	head   *feedhistory.Document // the only document so far
}

func (w *walker) run(url string) error {
	if goOn, err := w.follow(url); !goOn || err != nil {
		return err
	}
	// A walk does not look for archives of a complete feed, because RFC 5005
	// has none; but Atom-PMH mentions them (atom-pmh#33).
	if older := w.completeOlder(); older != "" {
		if goOn, err := w.follow(older); !goOn || err != nil {
			return err
		}
	}
	if w.given != nil && !w.yield(w.begun()) {
		return nil
	}
	w.yield(w.Finish())
	return nil
}

// follow walks from a document on. It reports whether findings are still
// wanted.
func (w *walker) follow(url string) (goOn bool, err error) {
	for doc, err := range w.client.Walk(w.ctx, url, nil) {
		gap, isGap := errors.AsType[*feedhistory.Gap](err)
		var found []Finding
		switch {
		case w.ctx.Err() != nil:
			return false, w.ctx.Err()
		case err == nil:
			if w.head = nil; w.documents == 0 {
				w.head = doc
			}
			found = w.Add(doc)
		case isGap && gap.Reason == feedhistory.ReasonDetached:
			w.given, w.detached = gap, true
		case isGap:
			found = w.gap(gap)
		default:
			f := failure(err, url)
			if f.Code == codeUnavailable {
				return false, err
			}
			found = []Finding{f}
		}
		if !w.yield(found) {
			return false, nil
		}
	}
	return true, nil
}

func (w *walker) completeOlder() string {
	if w.Profile != AtomPMH || w.head == nil || !w.head.Complete {
		return ""
	}
	older, _ := w.head.Links.Rel(feedhistory.RelPrevArchive)
	return older.Href
}

// begun reports the nature of the first document, if the feed does not begin with it.
// If it has only a next-archive, it may be a subscription document whose publisher
// mistook the direction.
func (w *walker) begun() []Finding {
	gap := []Finding{link{}.gap(w.given)}
	if w.head == nil || w.head.Archive {
		return gap
	}
	r := newReport(w.head, w.Profile)
	next := r.linkTo(feedhistory.RelNextArchive)
	if next.href == "" || r.has(feedhistory.RelPrevArchive) {
		return gap
	}
	doc, err := w.client.Get(w.ctx, next.href)
	if err != nil {
		return gap
	}
	n, here := newNeighbour(doc), w.first
	if n.newest.IsZero() || here.oldest.IsZero() || !n.newest.Before(here.oldest) {
		return gap
	}
	return []Finding{next.finding("next-archive-older",
		"next-archive leads to %s, whose entries end at %s, but those here are from %s on",
		clip(n.url), stamp(n.newest), stamp(here.oldest))}
}
