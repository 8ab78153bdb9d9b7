package web

import (
	"context"
	"log/slog"
	"sync"

	"github.com/feedhistory/feedhistory/mirror"
)

// Run polls the feeds somebody asks for, and the others as they fall due, until the
// context ends. It polls the feeds of one host one at a time. Without Run, nothing is
// fetched. It returns nil when all polls under way have ended.
func (s *Server) Run(ctx context.Context) error {
	s.once.Do(s.setUp)
	var preparing sync.WaitGroup
	if s.Output != nil { // in memory, they would fill it
		preparing.Go(func() { s.prepared.run(ctx, s.store) })
	}
	s.polls.Run(ctx)
	preparing.Wait()
	return nil
}

func (s *Server) newPoller(m *mirror.Mirror) *mirror.Poller {
	return &mirror.Poller{
		Mirror: m,
		Poll: func(ctx context.Context, before *mirror.Feed) (*mirror.Report, error) {
			changes, err := m.Update(ctx, before.URL)
			if err == nil && ctx.Err() == nil {
				s.adder.polled(ctx, before, changes.Failure)
			}
			return changes, err
		},
		Polled: func(p mirror.PollResult) {
			if logPoll(s.Logger, p); s.Output != nil && p.Err == nil && p.Report.Failure == nil {
				s.prepared.add(p.URL)
			}
		},
		Trouble: func(err error) { s.Logger.Error("the store cannot be read or indexed", "err", err) },
	}
}

// logPoll logs the end of a poll. The result is in the store.
func logPoll(log *slog.Logger, p mirror.PollResult) {
	switch c := p.Report; {
	case p.Err != nil:
		log.Warn("a poll was cut short", "feed", p.URL, "err", p.Err)
	case c.Failure != nil:
		log.Warn("a poll failed", "feed", p.URL, "err", c.Failure)
	default:
		log.Info("polled", "feed", p.URL, "verdict", c.Verdict, "documents", c.Documents,
			"added", c.Added, "changed", c.Changed, "deleted", c.Deleted)
	}
}
