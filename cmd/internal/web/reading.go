package web

import (
	"context"
	"fmt"
	"hash/crc32"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// Continuous reading: several entries on a page, in either direction.

// entriesRead is the number of entries on a page, and mostRead the size of
// contents after which a page ends.
const (
	entriesRead = 10
	mostRead    = 1 << 20
)

// A readPage shows entries one below the other.
type readPage struct {
	*feedView
	Run          run
	Entries      []readEntry
	Before, Next string // the queries of the pages before and after; "" for none
	Turned       string // the query for reading in the opposite direction
	Strip        *strip // of the first entry; nil if there is nothing to show around it
	Play         bool   // whether files can be played here
	entryImages
}

// A readEntry is an entry to read.
type readEntry struct {
	Feed, ID, Link string
	entryText
	Sound enclosures
	Marks *entryMarks // nil if the visitor may not set marks
	At    float64     // the position on the strip in percent
	Place string      // the place in words
}

// showRead shows the entries of a feed from one on, or those before one, or from the
// beginning.
func (s *Server) showRead(w http.ResponseWriter, r *http.Request, feed *mirror.Feed) error {
	q := r.URL.Query()
	p := &readPage{feedView: &feedView{Feed: feed}, Run: "forward", Play: q.Has("play"), entryImages: imagesOf(r)}
	if q.Get("order") == "newest" {
		p.Run = "backward"
	}
	records, err := s.readRecords(r.Context(), p, feed, q)
	if err != nil {
		return err
	}
	if len(records) == 0 {
		return errNoEntry
	}
	ids := make([]string, len(records))
	for i, record := range records {
		ids[i] = record.ID
	}
	marks, err := s.marksOf(r, feed.URL, ids...)
	if err != nil {
		return err
	}
	if p.Strip, err = s.stripOf(r, feed, records[0]); err != nil {
		return err
	}
	if p.Strip != nil {
		p.Strip.Reads = p.Run
	}
	for i, record := range records {
		p.add(record, i, marks[record.ID], s.at(r.URL.Path))
	}
	p.Turned = p.query("order", when(p.Run == "forward", "newest"), "from", ids[0])
	w.Header().Set("Content-Security-Policy", policyWith(p.Play, p.Images))
	return s.render(w, r, http.StatusOK, "read", "Reading "+p.Title(), p)
}

// query returns the query of another page in the same direction, with the same images.
func (p *readPage) query(pairs ...string) string {
	if !slices.Contains(pairs, "order") {
		pairs = append(pairs, "order", when(p.Run == "backward", "newest"))
	}
	return queryOf(append(pairs, "images", when(p.Images && !p.Always, "1"), "play", when(p.Play, "1"))...)
}

// readRecords returns the records of a page, and names the pages before and after it.
func (s *Server) readRecords(ctx context.Context, p *readPage, feed *mirror.Feed, q url.Values) (all []*mirror.Record, err error) {
	id, isBack := q.Get("from"), q.Has("before")
	if isBack {
		id = q.Get("before")
	}
	query := mirror.Query{Feed: feed.URL, Reverse: (p.Run == "forward") != isBack, Limit: entriesRead + 1}
	size := 0
	if id != "" {
		first, err := mirror.Lookup(ctx, s.store, feed.URL, id)
		if err != nil {
			return nil, err
		}
		if query.Beyond = first; !isBack {
			all, query.Limit, size = append(all, first), entriesRead, len(first.Content.Data)
		}
	}
	next := ""
	for record, err := range s.store.Entries(ctx, query) {
		if err != nil {
			return nil, err
		}
		if len(all) == entriesRead || size > mostRead {
			next = record.ID
			break
		}
		size += len(record.Content.Data)
		all = append(all, record)
	}
	if isBack {
		if slices.Reverse(all); next != "" {
			p.Before = p.query("before", all[0].ID)
		}
		p.Next = p.query("from", id)
		return all, nil
	}
	if next != "" {
		p.Next = p.query("from", next)
	}
	if id != "" {
		before, err := lastOf(ctx, s.store, mirror.Query{Feed: feed.URL, Reverse: !query.Reverse, Beyond: all[0], Limit: 1})
		if err != nil {
			return nil, err
		}
		if before != nil {
			p.Before = p.query("before", id)
		}
	}
	return all, nil
}

func (p *readPage) add(record *mirror.Record, i int, marks *entryMarks, at string) {
	room := mostShown
	prefix := fmt.Sprintf("t%d-", crc32.ChecksumIEEE([]byte(record.ID))) // the same on the next page, which a script adds to this one
	text, e := newWording(record.Content, record.Copy, record.Entry, display{images: p.Images, prefix: prefix}, &room)
	one := readEntry{
		Feed: p.Name(), ID: record.ID, Link: webLink(record.Content.Link), entryText: text, Marks: marks,
		Sound: newEnclosures(e, marks, p.Play, p.query("from", record.ID, "play", "1")),
	}
	if marks != nil {
		marks.Run, marks.Next = p.Run, at+p.query("from", record.ID)
	}
	if p.Strip != nil {
		one.At, one.Place = p.Strip.place(record.Time(), i, p.Run == "backward")
	}
	p.HasImages = p.HasImages || text.hasImages()
	p.Entries = append(p.Entries, one)
}

// Time returns when the entry was published; zero if unknown.
func (e *readEntry) Time() time.Time {
	if e.Published.IsZero() {
		return e.Updated
	}
	return e.Published
}

// showMonth leads to the first entry from a month of the strip on, which counts the months
// of the feed.
func (s *Server) showMonth(w http.ResponseWriter, r *http.Request, feed *mirror.Feed) error {
	f, err := s.feeds.figuresOf(r.Context(), feed)
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(r.FormValue("month"))
	since := newScale(f.months, feed, 0).start.AddDate(0, min(max(n, 0), 12*1000), 0)
	record, err := lastOf(r.Context(), s.store, mirror.Query{Feed: feed.URL, Since: since, Reverse: true, Limit: 1})
	if record == nil && err == nil {
		record, err = lastOf(r.Context(), s.store, mirror.Query{Feed: feed.URL, Until: since, Limit: 1})
	}
	switch {
	case err != nil:
		return err
	case record == nil:
		return mirror.ErrNotFound
	}
	to := "entry" + queryOf("id", record.ID)
	if run := run(r.FormValue("to")); slices.Contains(runs, run) {
		to = "read" + (&readPage{Run: run}).query("from", record.ID)
	}
	return seeOther(s.at("/feeds/" + republish.Name(feed.URL) + "/" + to))
}

// looks are the choices of how pages look. A browser keeps all but the usual ones
// in a cookie, and they are classes of the page.
var looks = []lookChoice{
	{"letters", "Letters", []choice{{Says: "Serif"}, {Key: "sans", Says: "Sans"}}},
	{"size", "Size", []choice{{Key: "small", Says: "Small"}, {Says: "Medium"}, {Key: "large", Says: "Large"}, {Key: "huge", Says: "Huge"}}},
	{"width", "Width", []choice{{Says: "Narrow"}, {Key: "wide", Says: "Wide"}}},
	{"theme", "Colours", []choice{{Says: "As the system"}, {Key: "light", Says: "Light"}, {Key: "dark", Says: "Dark"}}},
}

// A lookChoice is a group of choices in the form.
type lookChoice struct {
	Name, Says string
	Choices    []choice
}

const lookCookie = "look"

// Chosen returns the key of the group's choice among some keys; "" for the usual one.
func (g lookChoice) Chosen(keys []string) (key string) {
	for _, c := range g.Choices {
		if c.Key != "" && slices.Contains(keys, c.Key) {
			key = c.Key
		}
	}
	return key
}

// classesOf returns the classes of a page, without unknown keys.
func classesOf(keys []string) (classes []string) {
	for _, group := range looks {
		if key := group.Chosen(keys); key != "" {
			classes = append(classes, key)
		}
	}
	return classes
}

// lookOf returns the classes kept by a visitor's browser.
func lookOf(r *http.Request) []string {
	cookie, err := r.Cookie(lookCookie)
	if err != nil {
		return nil
	}
	return classesOf(strings.Split(cookie.Value, "."))
}

// chooseLook makes the browser keep a look. It changes nothing for others, so it needs no
// token.
func (s *Server) chooseLook(w http.ResponseWriter, r *http.Request) error {
	var chosen []string
	for _, group := range looks {
		chosen = append(chosen, r.FormValue(group.Name))
	}
	s.keepChoice(w, lookCookie, strings.Join(classesOf(chosen), "."), s.root)
	return seeOther(s.ownPath(r.FormValue("next")))
}
