package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/fleet"
)

// A statusCommand is the verb status.
type statusCommand struct {
	sharedDatabase
	Late time.Duration `default:"5m" above:"0s" placeholder:"TIME" help:"How long a feed may be due before it counts as late (default: ${default})."`
	Top  int           `default:"10" least:"0" placeholder:"N" help:"List at most N hosts, failing feeds and dead letters each (default: ${default})."`

	terminal.JSONFlag `set:"record=the status"`
}

// Help is the text of --help besides the flags.
func (c *statusCommand) Help() string {
	return "Hosts with late feeds come first, then those with the most feeds that are due. " +
		"A dead letter is a feed that is no longer polled, because its polls did not end; subscribe has it polled again."
}

// Run shows the state of the feeds.
func (c *statusCommand) Run(w *command.World) error {
	db, err := c.open(w)
	if err != nil {
		return err
	}
	defer db.Close()
	s, err := db.Status(w.Ctx, fleet.StatusQuery{Late: c.Late, Hosts: c.Top, Letters: c.Top, Errors: c.Top})
	if err != nil {
		return c.failure(err)
	}
	if c.JSON {
		return terminal.WriteJSON(w.Stdout, s)
	}
	out := bufio.NewWriter(w.Stdout)
	p := terminal.PageOn(w.Stdout, out)
	showStatus(p, s, c.Late, time.Now())
	return errors.Join(p.Err, out.Flush())
}

// tableWidth is the width of the table of hosts without their names.
const tableWidth = 54

// showStatus shows the state of the feeds.
func showStatus(p *terminal.Page, s *fleet.Status, late time.Duration, now time.Time) {
	number := func(n int64, note string) string { return fmt.Sprintf("%d%s", n, note) }
	p.Field("feeds", number(s.Feeds, fmt.Sprintf(" on %s", terminal.Count(int(s.Hosts), "host", "hosts"))))
	p.Field("running", terminal.Count(int(s.Running), "host", "hosts"))
	p.Field("due", dueText(s, late))
	p.Field("new", number(s.New, " not polled yet"))
	p.Field("failing", fmt.Sprint(s.Failing))
	p.Field("gone", fmt.Sprint(s.Gone))
	p.Field("dead", fmt.Sprint(s.Dead))
	p.Field("verdicts", verdictCounts(s.Verdicts))
	if len(s.ByHost) > 0 {
		p.Line("")
		if p.Fits(tableWidth) {
			p.Line(fmt.Sprintf("%8s %8s %8s %8s %8s %6s  %s", "FEEDS", "DUE", "LATE", "FAILING", "DEAD", "NEXT", "HOST"))
		}
		for _, h := range s.ByHost {
			if !p.Fits(tableWidth) {
				p.Line(terminal.Clean(h.Host))
				p.Para("  ", "  ", fmt.Sprintf("%s · %d due · %d late · %d failing · %d dead · next %s",
					terminal.Count(int(h.Feeds), "feed", "feeds"), h.Due, h.Late, h.Failing, h.Dead, hostNext(h, now)))
				continue
			}
			p.Line(fmt.Sprintf("%8d %8d %8d %8d %8d %6s  %s", h.Feeds, h.Due, h.Late, h.Failing, h.Dead, hostNext(h, now), terminal.Clean(h.Host)))
		}
	}
	for _, f := range s.Errors {
		p.Line("")
		p.Line(terminal.Clean(f.URL))
		p.Para("  - ", "    ", fmt.Sprintf("%s; the next try is due %s", strings.TrimPrefix(f.Error, f.URL+": "), terminal.Until(f.Next, now)))
	}
	for _, l := range s.Letters {
		p.Line("")
		p.Line(terminal.Clean(l.URL))
		p.Para("  - ", "    ", fmt.Sprintf("dead letter, since %s: %s", terminal.Time(l.Died), l.Reason))
	}
}

// dueText says how many feeds are due, and how many of them are late.
func dueText(s *fleet.Status, late time.Duration) string {
	switch {
	case s.Due == 0:
		return "0"
	case s.Late == 0:
		return fmt.Sprintf("%d, none of them for more than %s", s.Due, terminal.Span(late))
	}
	return fmt.Sprintf("%d, %d of them for more than %s", s.Due, s.Late, terminal.Span(late))
}

// verdictCounts lists the verdicts, the best first.
func verdictCounts(verdicts map[string]int64) string {
	var parts []string
	for v := feedhistory.VerdictWhole; v > feedhistory.VerdictUnknown; v-- {
		if n := verdicts[v.String()]; n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", v, n))
		}
	}
	return strings.Join(parts, ", ")
}

// hostNext is when a host is polled next, as a word.
func hostNext(h fleet.HostStatus, now time.Time) string {
	switch {
	case h.Running:
		return "now"
	case h.Next.IsZero():
		return "never"
	case !h.Next.After(now):
		return "due"
	}
	return terminal.Span(h.Next.Sub(now))
}
