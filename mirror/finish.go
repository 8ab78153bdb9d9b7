package mirror

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
)

// stop ends the poll with an error that the feed did not cause.
func (p *poll) stop(err error) (*Changes, error) {
	if p.sound != nil {
		p.feed, p.held = p.sound, nil
	}
	if failed := p.land(); failed != nil {
		err = errors.Join(err, failed)
	}
	p.gather()
	if p.ctx.Err() == nil && p.waiting != nil && !p.broken {
		err = errors.Join(err, p.drain()) // this stores what was read until then
	}
	begun := p.waiting != nil || p.feed.Version > p.from || len(p.waits) > 0
	if begun {
		p.interrupted()
	} else {
		p.feed.Next = p.ready
	}
	if p.ctx.Err() != nil && begun && !p.broken && !errors.Is(err, ErrConflict) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), landing)
		defer cancel()
		if p.waiting == nil {
			p.waiting = &group{}
		}
		err = errors.Join(err, p.commit(ctx))
	}
	return p.report(), err
}

// finish commits the end of the poll.
func (p *poll) finish() (*Changes, error) {
	if p.err != nil {
		return p.stop(p.err)
	}
	if err := p.land(); err != nil {
		return p.stop(err)
	}
	p.gather()
	if !p.cut && !p.unread {
		clear(p.sought)
	}
	if len(p.sought) == 0 {
		p.feed.Search = ""
	}
	p.feed.Pending = slices.DeleteFunc(p.feed.Pending, func(pending Pending) bool {
		return !pending.Page && !pending.Quota && p.document(pending.URL) != nil // processed under another name
	})
	if p.err != nil {
		return p.stop(p.err)
	}
	if p.changed && p.feed.Kind == feedhistory.Archived {
		if err := p.checkChain(); err != nil {
			return p.stop(err)
		}
	}
	p.feed.declare()
	if p.waiting == nil {
		p.waiting = &group{}
	}
	p.ended()
	if err := p.commit(p.ctx); err != nil {
		return p.stop(err)
	}
	return p.report(), nil
}

// verdict returns the verdict on the mirror. An archived feed is Partial as long
// as a chain that may have changed has not been checked.
func (p *poll) verdict() feedhistory.Verdict {
	f := p.feed
	switch {
	case f.Known.URL == "" && f.Source == "" || len(f.Pending) > 0 || len(f.Gaps) > 0:
		return feedhistory.Partial
	case f.Kind == feedhistory.Paged || f.Kind == feedhistory.Plain && f.Source != "" && !f.Proven:
		return feedhistory.Lossy
	case f.Kind == feedhistory.Plain && f.Source == "":
		return feedhistory.Window
	case f.Kind == feedhistory.Archived && p.changed:
		return feedhistory.Partial
	}
	return feedhistory.Whole
}

func (p *poll) report() *Changes {
	c, f := p.changes, p.feed
	c.Kind, c.Verdict, c.Gaps, c.Next, c.Gone = f.Kind, f.Verdict, f.Missing(), f.Next, f.Gone
	c.AsOf, c.Failure = f.WholeAsOf(), p.failure
	if c.Alias != "" {
		c.Next = time.Time{}
	}
	return c
}
