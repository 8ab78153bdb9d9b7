package backfill

import (
	"cmp"
	"context"
	"io"
	"iter"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/plain"
)

// waybackMachine is the address of the Wayback Machine's TimeMaps.
const waybackMachine = "https://web.archive.org/web/timemap/link/"

// Memento recovers entries from the snapshots of a feed in a web archive (RFC
// 7089). It asks a third party, whatever Policy.SameOrigin says, so it is used
// only where Backfill.Methods has it. Its zero value asks the Wayback Machine.
//
// Snapshots come newest first, so Merge keeps the latest copy of an entry. The
// Source of an entry says which snapshot it is from: its Response.Requested is
// the snapshot's URL, and "" for the feed itself; its LastModified is the
// snapshot's time. An entry that only a snapshot has may have been edited,
// withdrawn, or dropped for its age, so Memento treats nothing as deleted.
type Memento struct {
	TimeMap string        // the prefix of a TimeMap's URL, before the feed's; "" means that of the Wayback Machine
	Pace    time.Duration // the least time between requests to the archive; zero means one second

	// All requests every snapshot. By default Memento skips the snapshots between
	// two that share an entry: the feed's window has passed over them without a
	// hole, so they only have older copies, and what was withdrawn before the
	// later one.
	All bool
}

// Name returns "memento".
func (Memento) Name() string { return "memento" }

// Recognise returns Maybe for plain feeds: each may be archived.
func (Memento) Recognise(doc *feedhistory.Document) Sign {
	if doc.Kind() != feedhistory.Plain {
		return No
	}
	return Maybe
}

// Probe returns true: the walk begins with the list of snapshots.
func (Memento) Probe(context.Context, *feedhistory.Client, *feedhistory.Document, *Probe) (bool, error) {
	return true, nil
}

// Walk yields the snapshots, newest first. Between two that share no entry,
// others may be missing: there it yields a *feedhistory.Gap.
func (m Memento) Walk(ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, p *Probe) iter.Seq2[*feedhistory.Document, error] {
	return func(yield func(*feedhistory.Document, error) bool) {
		a := newArchive(m, ctx, c)
		defer a.http.CloseIdle()
		list, err := a.list(cmp.Or(m.TimeMap, waybackMachine) + cmp.Or(doc.Response.Requested, doc.URL))
		if err != nil {
			yield(nil, err)
			return
		}
		a.yield, a.snapshots, a.task = yield, list, newSource(ctx, c, doc, p).task
		a.walk(doc)
	}
}

// An archive is a web archive in use.
type archive struct {
	Memento
	ctx    context.Context
	http   *feedhistory.Client
	limits feedhistory.Limits
	yield  func(*feedhistory.Document, error) bool
	task   *task

	original  string // the feed's URL
	snapshots []Snapshot
	rewritten bool // there is no raw form
	tried     map[int]bool
	failed    int  // snapshots in a row
	ended     bool // by whoever ranges over the walk, or by failures
}

// newArchive makes a client of its own: another pace holds there, and answers
// are read in other ways.
func newArchive(m Memento, ctx context.Context, c *feedhistory.Client) *archive {
	http, _ := plain.Client(c)
	http.Pace, http.Policy.PerHost = max(c.Pace, cmp.Or(m.Pace, time.Second)), 1
	return &archive{Memento: m, ctx: ctx, tried: map[int]bool{}, limits: c.Limits, http: http}
}

// maxLists bounds how many lists make up a TimeMap.
const maxLists = 100

// list reads the TimeMap, and those that it refers to. There is none of what
// the archive does not have.
func (a *archive) list(first string) ([]Snapshot, error) {
	all := &timeMap{}
	queue, asked := []string{first}, map[string]bool{}
	for len(queue) > 0 && len(asked) < maxLists && len(all.Snapshots) < maxSnapshots {
		url := queue[0]
		if queue = queue[1:]; asked[url] {
			continue
		}
		asked[url] = true
		text, resp, err := a.get(url)
		if (answer{err: err}).missing() {
			continue
		}
		if err != nil {
			return nil, answer{err: err}.gap(url, "")
		}
		m, err := parseTimeMap(text, resp.URL)
		if err != nil {
			return nil, answer{err: err}.gap(url, "")
		}
		all.Original = cmp.Or(all.Original, m.Original)
		all.Snapshots = append(all.Snapshots, m.Snapshots...)
		queue = append(queue, m.More...)
	}
	a.original = all.Original
	all.sort()
	return all.Snapshots, nil
}

func (a *archive) get(url string) (string, *feedhistory.Answer, error) {
	resp, err := a.http.Do(a.ctx, "GET", url, "")
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), resp, err
}
