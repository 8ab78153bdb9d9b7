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
// 7089). It sends requests to a third party, whatever Policy.SameOrigin says,
// so it is used only if Backfill.Methods contains it. The zero value uses the
// Wayback Machine.
//
// Snapshots come newest first, so Merge keeps the latest copy of an entry. The Source
// of an entry names its snapshot: Response.Requested is the URL of the snapshot, "" for
// the feed itself; LastModified is the time of the snapshot. An entry found only in a
// snapshot may have been edited, withdrawn, or dropped for its age, so Memento treats
// nothing as deleted.
type Memento struct {
	TimeMap string        // the part of a TimeMap's URL before the feed's URL; "" means the Wayback Machine
	Pace    time.Duration // the minimum time between requests to the archive; zero means one second, a negative one is an error

	// All requests every snapshot. By default Memento skips the snapshots between two with
	// a common entry. Since the feed's window has moved from one to the other without a
	// hole, those in between can only contain older copies, and entries withdrawn before
	// the later one.
	All bool
}

// Name returns "memento".
func (Memento) Name() string { return "memento" }

// Recognise returns Maybe for plain feeds, because any feed may be archived.
func (Memento) Recognise(doc *feedhistory.Document) Sign {
	if doc == nil {
		return No
	}
	if doc.Kind() != feedhistory.Plain {
		return No
	}
	return Maybe
}

// Probe returns true, because the walk begins with the list of snapshots.
func (Memento) Probe(context.Context, *feedhistory.Client, *feedhistory.Document, *Probe) (bool, error) {
	return true, nil
}

// Walk yields the snapshots, newest first. Between two without a common entry, entries
// may be missing: there it yields a *feedhistory.Gap. The error may be the context's.
func (m Memento) Walk(ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, p *Probe) iter.Seq2[*feedhistory.Document, error] {
	return func(yield func(*feedhistory.Document, error) bool) {
		if err := given(c, doc, p); err != nil {
			yield(nil, err)
			return
		}
		if err := plain.Check("backfill", plain.Number{Name: "Memento.Pace", Value: int64(m.Pace)}); err != nil {
			yield(nil, err)
			return
		}
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

	original  string // the URL of the feed
	snapshots []snapshot
	rewritten bool // whether there is no raw form
	tried     map[int]bool
	failed    int  // failed snapshots in succession
	ended     bool // by the caller, or after failures
}

// newArchive makes a separate client, because the pace is different, and
// answers are read differently.
func newArchive(m Memento, ctx context.Context, c *feedhistory.Client) *archive {
	http, _ := plain.Client(c)
	http.Pace, http.Policy.PerHost = max(c.Pace, cmp.Or(m.Pace, time.Second)), 1
	return &archive{Memento: m, ctx: ctx, tried: map[int]bool{}, limits: c.Limits, http: http}
}

// maxLists is the maximum number of lists in a TimeMap.
const maxLists = 100

// list reads the TimeMap, and those it refers to. It returns no snapshots if the
// archive does not have the feed.
func (a *archive) list(first string) ([]snapshot, error) {
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
	resp, err := a.http.Do(a.ctx, feedhistory.Request{URL: url, Accept: "*/*"})
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return string(text), resp, err
}
