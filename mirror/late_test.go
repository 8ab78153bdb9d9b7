package mirror_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// A latePublisher keeps its archives by periods, and its subscription document by a
// rule of its own, so that entries may be in no document for a while.
type latePublisher struct {
	window  int   // the number of entries in the subscription document; 0 means all that no linked archive has
	growing bool  // whether the archive of the current period is linked while it is being filled (5005#15)
	delay   int   // the number of polls after its period when an archive is linked
	periods []int // the period of each entry, oldest first
	ended   []int // the poll in which each period ended
	poll    int
}

// linked returns the number of archives that documents link to.
func (p *latePublisher) linked() int {
	if p.growing {
		return len(p.ended) + 1
	}
	n := 0
	for n < len(p.ended) && p.ended[n]+p.delay <= p.poll {
		n++
	}
	return n
}

// first returns the first entry in the subscription document.
func (p *latePublisher) first() int {
	if p.window > 0 {
		return max(len(p.periods)-p.window, 0)
	}
	n := 0
	for n < len(p.periods) && p.periods[n] < p.linked() {
		n++
	}
	return n
}

func (p *latePublisher) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/atom+xml")
	archive, first, last := -1, 0, len(p.periods)
	if r.URL.Path != "/feed" {
		_, err := fmt.Sscanf(r.URL.Path, "/%d", &archive)
		if err != nil || archive >= p.linked() {
			http.NotFound(w, r)
			return
		}
	}
	older := archive - 1
	if archive < 0 {
		older, first = p.linked()-1, p.first()
	}
	var b strings.Builder
	b.WriteString(`<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><id>urn:feed</id>`)
	if archive >= 0 {
		b.WriteString("<fh:archive/>")
	}
	if older >= 0 {
		fmt.Fprintf(&b, `<link rel="prev-archive" href="/%d"/>`, older)
	}
	for i := last - 1; i >= first; i-- {
		if archive < 0 || p.periods[i] == archive {
			at := time.Date(2003, 12, 1, i, 0, 0, 0, time.UTC)
			fmt.Fprintf(&b, "<entry><id>urn:%d</id><title>%[1]d</title><updated>%s</updated></entry>", i, at.Format(time.RFC3339))
		}
	}
	b.WriteString("</feed>")
	_, _ = w.Write([]byte(b.String()))
}

// grow publishes entries, between which periods may end.
func (p *latePublisher) grow(t *rapid.T) {
	for range rapid.IntRange(0, 6).Draw(t, "entries") {
		if rapid.IntRange(0, 4).Draw(t, "period ends") == 0 {
			p.ended = append(p.ended, p.poll)
		}
		p.periods = append(p.periods, len(p.ended))
	}
}

// However late archives are linked, and however many entries come between two polls, a
// mirror that is whole has all entries. The feed of a publisher whose documents have
// all entries at any time is whole after each poll.
func TestLateArchives(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := &latePublisher{
			window:  rapid.IntRange(0, 5).Draw(r, "window"),
			growing: rapid.Bool().Draw(r, "growing"),
			delay:   rapid.IntRange(0, 2).Draw(r, "delay"),
		}
		p.growing = p.growing && p.window > 0 // otherwise the subscription document is always empty
		store := mirror.NewMemory()
		m := newMirror(store, p)
		var story []string
		archived, cut, before := true, false, -1 // at each poll; at any; the entries before the first poll
		for p.poll = range rapid.IntRange(2, 8).Draw(r, "polls") {
			p.grow(r)
			m.Client.Budget.Documents = rapid.SampledFrom([]int{0, 0, 1, 2, 3}).Draw(r, "budget")
			changes, err := m.Update(t.Context(), modelURL)
			require.NoError(t, err)
			story = append(story, fmt.Sprint(len(p.periods), " linked ", p.linked(), " budget ", m.Client.Budget.Documents, " ", changes.Feed.Verdict, " ", changes.Feed.Ledger.Gaps()))
			if len(p.periods) == 0 {
				continue
			}
			archived = archived && changes.Feed.Kind == feedhistory.KindArchived
			if before < 0 {
				before = len(p.periods) // those that are in no document at the first poll cannot be known
			}
			if changes.Feed.Verdict == feedhistory.VerdictWhole {
				entries := held(t, store, modelURL)
				for i := before; i < len(p.periods); i++ {
					if p.periods[i] >= p.linked() && i < p.first() {
						continue // it is in no document
					}
					require.Contains(t, entries, fmt.Sprintf("urn:%d", i), "%+v %q", *p, story)
				}
			}
			cut = cut || changes.More
			if p.window == 0 && archived && !cut {
				require.NotEqual(t, feedhistory.VerdictPartial, changes.Feed.Verdict, "%+v %v", *p, changes.Feed.Ledger.Gaps())
			}
		}
		m.Client.Budget.Documents = 0
		for more := 0; p.window == 0 && archived && len(p.periods) > 0; more++ {
			if changes := polled(t, m, modelURL); changes.Feed.Verdict != feedhistory.VerdictPartial {
				break
			} else {
				require.Less(t, more, 10, "%+v %v %q", *p, changes.Feed.Ledger.Gaps(), story)
			}
		}
	})
}
