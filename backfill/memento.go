package backfill

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/settings"
)

// waybackMachine is the address of the Wayback Machine's TimeMaps.
const waybackMachine = "https://web.archive.org/web/timemap/link/"

// Memento recovers entries from the snapshots of a feed in a web archive (RFC
// 7089). It sends requests to a third party, whatever Client.OneOrigin says,
// so it is used only if Backfill.Methods contains it. The zero value uses the
// Wayback Machine.
//
// Snapshots come newest first, so Merge keeps the latest copy of an entry. The Head
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

// Recognise returns Any for plain feeds, because any feed may be archived.
func (Memento) Recognise(doc *feedhistory.Document) Sign {
	if doc == nil || doc.Kind() != feedhistory.KindPlain {
		return No
	}
	return Any
}

// Probe returns true, because the walk begins with the list of snapshots.
func (Memento) Probe(context.Context, *feedhistory.Client, *feedhistory.Document, *Probe) (bool, error) {
	return true, nil
}

// Documents yields the snapshots, newest first. Between two without a common entry, entries
// may be missing: there it yields a *feedhistory.Gap.
func (m Memento) Documents(ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, p *Probe) iter.Seq2[*feedhistory.Document, error] {
	return walked(ctx, c, doc, p, func(s *source, yield func(*feedhistory.Document, error) bool) {
		if err := settings.Check("backfill", settings.Number{Name: "Memento.Pace", Value: int64(m.Pace)}); err != nil {
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
		a.yield, a.snapshots, a.task = yield, list, s.task
		a.walk(doc)
	})
}

// An archive is a web archive in use.
type archive struct {
	Memento
	ctx   context.Context
	http  *feedhistory.Client
	most  int64 // bytes of a document
	yield func(*feedhistory.Document, error) bool
	task  *task

	original  string // the URL of the feed
	snapshots []snapshot
	rewritten bool // whether there is no raw form
	tried     map[int]bool
	live      *feedhistory.Document
	aside     []string // snapshots of another feed
	failed    int      // failed snapshots in succession
	ended     bool     // by the caller, or after failures
}

// newArchive makes a separate client, because the pace is different, and
// answers are read differently.
func newArchive(m Memento, ctx context.Context, c *feedhistory.Client) *archive {
	http, _ := settings.Cloned(c)
	http.Pace, http.PerHost = max(c.Pace, cmp.Or(m.Pace, time.Second)), 1
	return &archive{Memento: m, ctx: ctx, tried: map[int]bool{}, most: c.MaxBytes, http: http}
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
		m, err := parseTimeMap(text, resp.Request.URL.String())
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

func (a *archive) get(url string) (string, *http.Response, error) {
	text, resp, err := settings.Read(a.ctx, a.http, url, nil)
	return string(text), resp, err
}

// A snapshot is a copy of a feed document in a web archive, a memento.
type snapshot struct {
	URL  string    // its address in the archive
	Time time.Time // when the archive took it
}

// A timeMap is the list of a web archive's snapshots of a document (RFC 7089
// §5).
type timeMap struct {
	Original  string // the URL of the document; "" if the list does not say
	Snapshots []snapshot
	More      []string // the URLs of further lists
}

// maxSnapshots is the maximum number of snapshots in a TimeMap.
const maxSnapshots = 1_000_000

// parseTimeMap reads a TimeMap in the link format (RFC 6690). References
// resolve against base, the URL of the list. The snapshots are sorted, oldest
// first; those without a readable time are left out. If the text has no link at
// all, parseTimeMap returns an error.
func parseTimeMap(text, base string) (*timeMap, error) {
	own, err := url.Parse(base)
	if err != nil {
		return nil, err
	}
	m := &timeMap{}
	found := false
	for text != "" && len(m.Snapshots) < maxSnapshots {
		target, params, rest := iri.CutLink(text)
		if params == nil {
			break
		}
		text, found = rest, true
		u, err := own.Parse(target)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" {
			continue
		}
		m.add(target, u.String(), params, own.String())
	}
	if !found {
		return nil, errors.New("a TimeMap is a list of links (RFC 7089 §5)")
	}
	m.sort()
	return m, nil
}

// sort sorts the snapshots, oldest first, and removes duplicates.
func (m *timeMap) sort() {
	slices.SortStableFunc(m.Snapshots, func(a, b snapshot) int {
		return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.URL, b.URL))
	})
	m.Snapshots = slices.Compact(m.Snapshots)
}

// add adds a link. It may have several relations: "first memento".
func (m *timeMap) add(target, absolute string, params map[string]string, own string) {
	for rel := range strings.FieldsSeq(params["rel"]) {
		switch rel {
		case "original":
			m.Original = cmp.Or(m.Original, target)
		case "memento":
			if at, err := http.ParseTime(params["datetime"]); err == nil {
				m.Snapshots = append(m.Snapshots, snapshot{absolute, at})
			}
		case "timemap":
			if absolute != own && (params["type"] == "" || strings.HasPrefix(params["type"], "application/link-format")) {
				m.More = append(m.More, absolute)
			}
		}
	}
}

// walk yields the snapshots, newest first, from where an earlier walk ended. It
// requests the oldest at once, to know the range between.
func (a *archive) walk(live *feedhistory.Document) {
	a.original, a.live = cmp.Or(a.original, live.URL), live
	defer a.tell()
	newest, high := live, len(a.snapshots)
	if before := a.task.place.Before; !before.IsZero() {
		high = slices.IndexFunc(append(a.snapshots, snapshot{Time: endOfTime}), func(s snapshot) bool { return s.Time.After(before) })
		if newest, high = a.nearest(0, high, high-1); newest != nil && !newest.LastModified.Equal(before) && !a.hand(newest) {
			return
		}
	}
	oldest, at := a.nearest(0, high, 0)
	if oldest != nil && !(a.between(newest, oldest, at+1, high) && a.hand(oldest)) || a.ended {
		return
	}
	a.task.place = place{}
}

// endOfTime is later than all snapshots.
var endOfTime = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// between yields the entries the snapshots from low until high add to the documents
// before and after them, and reports whether the walk continues.
func (a *archive) between(newer, older *feedhistory.Document, low, high int) bool {
	overlap := ids(older.Entries).hasAny(newer.Entries)
	if overlap && !a.All {
		return true
	}
	middle, at := a.nearest(low, high, low+(high-low)/2)
	switch {
	case a.ended:
		return false
	case middle != nil:
		return a.between(newer, middle, at+1, high) && a.hand(middle) && a.between(middle, older, low, at)
	case overlap:
		return true
	}
	a.ended = !a.yield(nil, newGap(older.Response.Requested, newer.Response.Requested, feedhistory.ReasonMissedWindow, fmt.Errorf(
		"the snapshot of %s has no entry in common with the next that can be retrieved", older.LastModified.UTC().Format(time.RFC3339))))
	return !a.ended
}

// hand yields a snapshot.
func (a *archive) hand(doc *feedhistory.Document) bool {
	a.task.place = place{Before: doc.LastModified}
	a.ended = !a.yield(doc, nil)
	return !a.ended
}

// maxFailed is the number of failed snapshots in succession before the archive is left
// alone.
const maxFailed = 10

// nearest reads a snapshot among those from low until high: the wanted one or,
// if it cannot be retrieved or has no entries, the nearest one after or before
// it. (Archives also have copies of error pages.) It requests each only once.
func (a *archive) nearest(low, high, want int) (*feedhistory.Document, int) {
	for distance := 0; distance < high-low; distance++ {
		for _, at := range []int{want + distance, want - distance} {
			if at < low || at >= high || a.tried[at] {
				continue
			}
			a.tried[at] = true
			doc, err := a.snapshot(a.snapshots[at])
			if err == nil {
				a.failed = 0
				if isOther(a.live, doc) {
					a.aside = append(a.aside, doc.Response.Requested)
				} else if len(doc.Entries) > 0 {
					return doc, at
				}
			} else if a.failed++; a.failed >= maxFailed || a.ctx.Err() != nil {
				if (answer{err: err}).failure() == nil {
					a.task.place = place{} // the next walk would end in the same way
				}
				a.yield(nil, answer{err: err}.gap(a.snapshots[at].URL, a.original))
				a.ended = true
				return nil, 0
			}
		}
	}
	return nil, 0
}

// tell yields a gap for the snapshots set aside.
func (a *archive) tell() {
	if a.ended || len(a.aside) == 0 {
		return
	}
	a.ended = !a.yield(nil, newGap(a.aside[0], a.original, feedhistory.ReasonForeign,
		fmt.Errorf("%d snapshots are of another feed, as of a domain that was parked: they are left out", len(a.aside))))
}

// isOther reports whether a snapshot is of another feed than the live one: its id is
// another or, without ids, neither its title, nor the host of its site, nor that of any entry
// is the same.
func isOther(live, doc *feedhistory.Document) bool {
	if ids(live.Entries).hasAny(doc.Entries) || live.Title == doc.Title {
		return false
	}
	if live.ID != "" && doc.ID != "" {
		return live.ID != doc.ID
	}
	hosts := set{}
	for _, d := range []*feedhistory.Document{live, doc} {
		site, _ := d.Links.Rel("alternate")
		addresses := []string{site.Href}
		for _, e := range d.Entries {
			link, _ := e.Links.Rel("alternate")
			addresses = append(addresses, link.Href, e.ID)
		}
		for _, address := range addresses {
			host := feedhistory.HostOf(address)
			if d == doc && iri.IsHTTP(address) && hosts[host] {
				return false
			}
			hosts[host] = hosts[host] || d == live
		}
	}
	return true
}

// snapshot reads a snapshot, in its raw form if the archive has it.
func (a *archive) snapshot(s snapshot) (*feedhistory.Document, error) {
	raw, offered := rawForm(s.URL)
	if !offered || a.rewritten {
		raw = s.URL
	}
	text, resp, err := a.get(raw)
	if raw != s.URL && (answer{err: err}).missing() {
		if text, resp, err = a.get(s.URL); err == nil {
			a.rewritten = true
		}
	}
	if err != nil {
		return nil, err
	}
	if a.rewritten || !offered {
		text = restore(text, s.URL)
	}
	// The Link fields and the dates of the archive's answer are not the feed's.
	p := feedhistory.Parser{MaxBytes: a.most, Header: http.Header{
		"Content-Type":  {cmp.Or(resp.Header.Get("X-Archive-Orig-Content-Type"), resp.Header.Get("Content-Type"))},
		"Last-Modified": {s.Time.UTC().Format(http.TimeFormat)},
	}}
	doc, err := p.Parse(strings.NewReader(text), a.original)
	if err != nil {
		return nil, err
	}
	doc.Response = feedhistory.Response{Requested: s.URL, Received: time.Now()}
	if len(doc.Entries) > 0 {
		doc.Entries[0].Head.Response = doc.Response // shared by all entries
	}
	return doc, nil
}

// memento matches the URLs of snapshots in the Wayback Machine and similar
// archives: a prefix, the time, the URL of the document.
var memento = regexp.MustCompile(`^(.*?/)([0-9]{14})(/[a-z]+:/.*)$`)

// rawForm returns the URL of a snapshot without rewritten links.
func rawForm(u string) (string, bool) {
	m := memento.FindStringSubmatch(u)
	if m == nil {
		return u, false
	}
	return m[1] + m[2] + "id_" + m[3], true
}

// restore restores the URLs an archive has rewritten to point to itself.
func restore(text, snapshot string) string {
	m := memento.FindStringSubmatch(snapshot)
	if m == nil {
		return text
	}
	u, err := url.Parse(m[1])
	if err != nil {
		return text
	}
	stamped := regexp.QuoteMeta(u.Path) + `[0-9]{4,14}(?:[a-z]{2}_)?/([a-z]+:/)`
	text = regexp.MustCompile(`(?:https?:)?//`+regexp.QuoteMeta(u.Host)+stamped).ReplaceAllString(text, "$1")
	return regexp.MustCompile(`([\s"'=(>;])`+stamped).ReplaceAllString(text, "$1$2")
}
