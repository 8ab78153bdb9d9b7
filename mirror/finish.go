package mirror

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
)

// stop ends the poll with an error not caused by the feed.
func (p *poll) stop(err error) (*Report, error) {
	if p.snapshot != nil {
		*p.feed, p.commits.held = *p.snapshot, nil
	}
	if failed := p.commits.land(); failed != nil {
		err = errors.Join(err, failed)
	}
	p.commits.gather()
	if p.ctx.Err() == nil && p.commits.waiting != nil && !p.commits.broken {
		err = errors.Join(err, p.commits.drain()) // this stores everything read until then
	}
	begun := p.commits.waiting != nil || p.feed.Commits > p.from || len(p.waits.until) > 0
	if begun {
		p.notEnded(p.feed.Wait) // nobody is at work on the feed
	} else {
		p.feed.Next = p.ready
	}
	if p.ctx.Err() != nil && begun && !p.commits.broken && !errors.Is(err, ErrConflict) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), landing)
		defer cancel()
		err = errors.Join(err, p.commits.last(ctx))
	}
	report := p.report()
	if p.commits.broken || p.commits.waiting != nil {
		report.Verdict = feedhistory.Unknown // of what the Store has
	}
	return report, err
}

// finish commits the end of the poll.
func (p *poll) finish() (*Report, error) {
	if p.documents.err != nil {
		return p.stop(p.documents.err)
	}
	if err := p.commits.land(); err != nil {
		return p.stop(err)
	}
	p.commits.gather()
	if err := p.replace(); err != nil {
		return p.stop(err)
	}
	unfound := false
	if !p.cut && !p.backlog.unread {
		unfound = p.search.runs()
		p.search.end()
	}
	if !p.search.runs() {
		p.feed.Search = ""
	}
	p.feed.Pending = slices.DeleteFunc(p.feed.Pending, func(pending PendingDocument) bool {
		return !pending.Page && !pending.Quota && p.documents.get(pending.URL) != nil // processed under another name
	})
	if p.documents.err != nil {
		return p.stop(p.documents.err)
	}
	changed := p.chain.changed
	if changed && p.feed.Kind == feedhistory.Archived {
		if err := p.checkChain(); err != nil {
			return p.stop(err)
		}
	}
	if !p.cut && !p.backlog.unread {
		p.join.end(unfound, unfoundGap(p.feed.Known.URL, p.now))
	}
	if err := p.noteChecked(changed); err != nil {
		return p.stop(err)
	}
	p.feed.declare()
	p.ended()
	if err := p.commits.last(p.ctx); err != nil {
		return p.stop(err)
	}
	return p.report(), nil
}

// unfoundGap returns the gap for entries in no archive.
func unfoundGap(url string, now time.Time) GapRecord {
	return GapRecord{
		URL: url, Reason: feedhistory.ReasonMissedWindow, Found: now,
		Message: "entries that it no longer has are in no archive: others may have come and gone since the last poll",
	}
}

// verdict returns the verdict on the mirror. An archived feed is Partial until a
// possibly changed chain has been checked.
func (p *poll) verdict() feedhistory.Verdict {
	f := p.feed
	switch {
	case f.Known.URL == "" && f.Source == "" || len(f.Pending) > 0 || len(f.Gaps) > 0:
		return feedhistory.Partial
	case f.Kind == feedhistory.Paged || f.Kind == feedhistory.Plain && f.Source != "" && !f.Proven:
		return feedhistory.Lossy
	case f.Kind == feedhistory.Plain && f.Source == "":
		return feedhistory.Window
	case f.Kind == feedhistory.Archived && p.chain.changed:
		return feedhistory.Partial
	}
	return feedhistory.Whole
}

func (p *poll) report() *Report {
	c, f := p.changes, p.feed
	c.Kind, c.Verdict, c.Gaps, c.Next, c.Gone = f.Kind, f.Verdict, f.Missing(), f.Next, f.Gone
	c.AsOf, c.Checked, c.Failure = f.WholeAsOf(), f.Checked, p.failure
	if c.Alias != "" {
		c.Next = time.Time{}
	}
	return c
}
