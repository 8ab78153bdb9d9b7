package backfill

import (
	"sync"
)

// An earlyPage is a page requested before the one before it has been answered.
type earlyPage struct {
	source  *source
	url     string // "" for none
	answers chan answer
	running sync.WaitGroup
}

// ask requests a page.
func (p *earlyPage) ask(url string) {
	answers := make(chan answer, 1)
	p.url, p.answers = url, answers
	p.running.Go(func() { answers <- p.source.request(url) })
}

// overlapped returns page n, and requests the next one at the same time if the server
// counts its posts: settle then finds a post that moves from one page to the other between
// the two. Pages are costly to make, so no more than two are in flight.
func (s *stable) overlapped(n, until int) answer {
	url := stablePage(s.source, n)
	_, isKept := s.kept[url]
	if s.early.url != url && !isKept {
		s.early.ask(url)
	}
	now := s.early.answers
	hurries := s.task.counter != "" && s.inRow == 0 && !s.c.Policy.NoGuess && s.c.Policy.PerHost != 1 && s.c.Pace <= 0
	if next := stablePage(s.source, n-1); hurries && n > 1 && n-1 >= until {
		if _, isKept := s.kept[next]; !isKept {
			s.early.ask(next)
		}
	}
	if isKept {
		return s.get(url)
	}
	return <-now
}
