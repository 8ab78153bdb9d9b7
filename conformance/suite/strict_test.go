package suite_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/conformance/suite"
	"golang.org/x/net/html/charset"
)

// A strict is a second reader, which shares no code with the first. It reads
// only what encoding/xml considers well-formed, stops at the first error of a
// chain, and repairs nothing. It is a correct reader, so no requirement may
// fail it. Its faults can be switched on one by one.
type strict struct {
	faults

	entries   map[string]strictEntry
	all       []strictEntry // all copies
	deleted   map[string]time.Time
	processed map[string]bool
	pending   []string
	missed    bool // a window did not overlap
	polled    bool

	gaps     []string
	requests int
}

// The faults of wrong readers.
type faults struct {
	oneDocument, keepsAll, keepsOldest, ignoresDeletions   bool
	alwaysWhole, alwaysPartial, noGaps, loops              bool
	baseIsFeed, lowerCase, forgets, deletes, asksAllAlways bool
	followsComplete, skipsLast                             bool

	textTimes, ignoresZones, ignoresDocumentTime, usesPublished bool // in comparing copies
	lastCopy, stopsAtKnown, identifiesByLink, readsAnySource    bool

	ignoresBaseOnLink, ignoresURIs, stripsSlash, resolvesIDs bool

	staysAtArchive, ignoresPages, pagesAreWhole, windowIsWhole, ignoresComplete  bool
	flagsAnywhere, linksOfAtomOnly, linksBeforeEntries, oneHost, stopsAtEmpty    bool
	forgetsPending, deletesForEver, ignoresMissed, absenceIsTheEnd, firstHundred bool
	limit                                                                        int // documents, after which it calls the history whole
}

type strictEntry struct {
	id, title    string
	updated, doc time.Time

	published, link string
	written         string // updated as it is written
}

type strictDoc struct {
	url               string
	complete, archive bool
	updated           time.Time
	entries           []strictEntry
	deleted           map[string]time.Time
	links             map[string]string
	anySource         bool // links count wherever they are
	faults
}

const (
	spaceAtom = "http://www.w3.org/2005/Atom"
	spaceFH   = "http://purl.org/syndication/history/1.0"
	spaceAT   = "http://purl.org/atompub/tombstones/1.0"
	spaceXML  = "http://www.w3.org/XML/1998/namespace"
)

var strictClient = &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: -1, DisableKeepAlives: true}}

func (s *strict) get(address string) (*strictDoc, error) {
	if s.requests++; s.requests > 400 {
		return nil, errors.New("too many requests")
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" || u.User != nil {
		return nil, fmt.Errorf("%s: refused", address)
	}
	resp, err := strictClient.Get(address)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New(resp.Status)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 1_690_000))
	if err != nil || len(body) == 1_690_000 {
		return nil, errors.Join(err, errors.New("too large"))
	}
	doc := &strictDoc{url: resp.Request.URL.String(), links: map[string]string{}, deleted: map[string]time.Time{}, anySource: s.readsAnySource, faults: s.faults}
	if s.baseIsFeed {
		doc.url = u.Scheme + "://" + u.Host + "/feed.atom"
	}
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return doc, doc.json(body)
	}
	if err = doc.xml(body); err == nil && s.lowerCase {
		for i := range doc.entries {
			doc.entries[i].id = strings.ToLower(strings.TrimSuffix(doc.entries[i].id, "#"))
		}
	}
	if s.firstHundred {
		doc.entries = doc.entries[:min(len(doc.entries), 100)]
	}
	for i, e := range doc.entries {
		if s.identifiesByLink && e.link != "" {
			doc.entries[i].id = e.link
		}
		if s.stripsSlash {
			doc.entries[i].id = strings.TrimSuffix(e.id, "/")
		}
		if u, err := url.Parse(e.id); s.resolvesIDs && err == nil && u.Host != "" {
			u.Host = strings.TrimSuffix(u.Host, ":80")
			doc.entries[i].id = u.JoinPath().String()
		}
	}
	return doc, err
}

func (d *strictDoc) json(body []byte) error {
	var feed struct {
		Version string
		NextURL string `json:"next_url"`
		Items   []struct {
			ID    string
			Title string
			Date  time.Time `json:"date_modified"`
		}
	}
	if err := json.Unmarshal(body, &feed); err != nil {
		return err
	}
	if feed.NextURL != "" {
		d.link("next", feed.NextURL, d.url)
	}
	for _, item := range feed.Items {
		d.entries = append(d.entries, strictEntry{id: item.ID, title: item.Title, updated: item.Date, doc: d.updated})
	}
	return nil
}

func (d *strictDoc) link(rel, href, base string) {
	if !d.ignoresURIs {
		rel = strings.TrimPrefix(rel, "http://www.iana.org/assignments/relation/")
	}
	if _, known := d.links[rel]; !known && href == "" {
		d.links[rel] = "none:" // the document exists, but cannot be retrieved
	}
	b, err := url.Parse(base)
	if err != nil {
		return
	}
	u, err := b.Parse(href)
	if _, known := d.links[rel]; known || err != nil {
		return
	}
	if u.Fragment = ""; d.oneHost && u.Host != b.Host {
		return
	}
	d.links[rel] = u.String()
}

// take merges a document that is older than those before it.
func (s *strict) take(d *strictDoc) {
	for _, e := range d.entries {
		s.all = append(s.all, e)
		old, known := s.entries[e.id]
		better := s.isNewer(e, old)
		if !known || better {
			s.entries[e.id] = e
		}
	}
	for id, when := range d.deleted {
		if when.After(s.deleted[id]) {
			s.deleted[id] = when
		}
	}
}

// isNewer compares two copies of an entry, the first of them from an older document.
func (s *strict) isNewer(e, old strictEntry) bool {
	at, was := e.updated, old.updated
	switch {
	case s.keepsOldest:
		return e.updated.Before(old.updated)
	case s.lastCopy:
		return true
	case s.textTimes && e.written != old.written:
		return e.written > old.written
	case s.ignoresZones:
		_, before := was.Zone()
		_, now := at.Zone()
		at, was = at.Add(time.Duration(now)*time.Second), was.Add(time.Duration(before)*time.Second)
	case s.usesPublished && e.published != old.published:
		return e.published > old.published
	}
	return at.After(was) || at.Equal(was) && e.doc.After(old.doc) && !s.ignoresDocumentTime
}

// read reads the feed once, or polls it again.
func (s *strict) read(address string) *suite.Result {
	if s.entries == nil || s.forgets {
		s.entries, s.deleted, s.processed = map[string]strictEntry{}, map[string]time.Time{}, map[string]bool{}
		s.all, s.pending, s.polled = nil, nil, false
	}
	s.gaps, s.requests = []string{}, 0
	head, err := s.get(address)
	if err != nil {
		s.gaps = append(s.gaps, address)
		return s.tell("failed")
	}
	verdict := "window"
	next, rel := "", "prev-archive"
	head = s.subscription(head, address)
	known := false
	for _, e := range head.entries {
		_, ok := s.entries[e.id]
		known = known || ok
	}
	switch {
	case head.complete && !s.followsComplete && !s.ignoresComplete:
		verdict = "whole"
		s.entries, s.all, s.pending, s.gaps = map[string]strictEntry{}, nil, nil, []string{}
	case head.links[rel] != "":
		verdict, next = "whole", head.links[rel]
	case head.links["next"] != "" || head.links["previous"] != "":
		verdict, rel, next = "lossy", "next", head.links["next"]
		if s.ignoresPages {
			next = ""
		}
		if s.pagesAreWhole {
			verdict = "whole"
		}
		if head.links["previous"] != "" {
			s.gaps = append(s.gaps, head.url)
		}
	default:
		if s.windowIsWhole {
			verdict = "whole"
		}
		s.missed = !s.ignoresMissed && s.missed || !s.ignoresMissed && s.polled && !known && len(s.entries) > 0
	}
	if s.deletes {
		s.entries, s.all = map[string]strictEntry{}, nil
	}
	s.takeNewest(head)
	s.polled = true
	if s.oneDocument {
		if next != "" {
			s.gaps = append(s.gaps, next)
		}
		return s.tell(verdict)
	}
	pending := append([]string{next}, s.pending...)
	if s.forgetsPending {
		pending = pending[:1]
	}
	s.pending = nil
	s.missed = s.missed && rel == "prev-archive" && verdict != "whole"
	walked := map[string]bool{head.url: true, address: true}
	for i, link := range pending {
		if i == 0 || !walked[link] { // the chain may have paid it already
			s.chain(link, rel, walked)
		}
	}
	return s.tell(verdict)
}

// subscription returns the document that an archive calls current, or the one
// that was read.
func (s *strict) subscription(head *strictDoc, address string) *strictDoc {
	switch current := head.links["current"]; {
	case head.archive && current != "" && current != address && !s.oneDocument && !s.staysAtArchive:
		s.take(head)
		s.pending = append(s.pending, head.links["prev-archive"])
		s.processed[head.url] = true
		newer, err := s.get(current)
		if err != nil {
			s.gaps = append(s.gaps, current)
			return head
		}
		if newer.archive {
			s.gaps = append(s.gaps, newer.url)
		}
		return newer
	case head.archive || head.links["next-archive"] != "":
		s.gaps = append(s.gaps, head.url)
	}
	return head
}

// takeNewest merges a document that is newer than everything known.
func (s *strict) takeNewest(d *strictDoc) {
	older := s.entries
	s.entries = map[string]strictEntry{}
	s.take(d)
	for id, e := range older {
		if now, ok := s.entries[id]; !ok || e.updated.After(now.updated) {
			s.entries[id] = e
		}
	}
}

func (s *strict) chain(link, rel string, walked map[string]bool) {
	for link != "" {
		if walked[link] && !s.loops {
			s.gaps = append(s.gaps, link)
			return
		}
		if rel == "prev-archive" && s.processed[link] && !s.asksAllAlways && !s.loops {
			return
		}
		if s.limit > 0 && s.requests >= s.limit {
			return
		}
		walked[link] = true
		doc, err := s.get(link)
		if err == nil && walked[doc.url] && doc.url != link && !s.loops {
			err = errors.New("a loop")
		}
		if err != nil && err.Error() == "404 Not Found" && s.absenceIsTheEnd {
			return
		}
		if err != nil {
			s.gaps = append(s.gaps, link)
			if rel == "prev-archive" {
				s.pending = append(s.pending, link)
			}
			return
		}
		if s.skipsLast && doc.links[rel] == "" || s.stopsAtEmpty && len(doc.entries) == 0 {
			return
		}
		walked[doc.url] = true
		if s.stopsAtKnown && !slices.ContainsFunc(doc.entries, func(e strictEntry) bool { _, known := s.entries[e.id]; return !known }) {
			return
		}
		s.take(doc)
		s.processed[link], s.processed[doc.url] = true, true
		link = doc.links[rel]
	}
}

// tell returns the result of the reader.
func (s *strict) tell(verdict string) *suite.Result {
	r := &suite.Result{Verdict: verdict, Gaps: s.gaps, Deleted: []string{}}
	for id, when := range s.deleted {
		if e, ok := s.entries[id]; ok && e.updated.After(when) && !s.deletesForEver || s.ignoresDeletions {
			continue
		}
		r.Deleted = append(r.Deleted, id)
		delete(s.entries, id)
	}
	for _, e := range s.entries {
		r.Entries = append(r.Entries, suite.ReaderEntry{ID: e.id, Title: e.title})
	}
	if s.keepsAll {
		r.Entries = nil
		for _, e := range s.all {
			r.Entries = append(r.Entries, suite.ReaderEntry{ID: e.id, Title: e.title})
		}
	}
	switch {
	case s.alwaysWhole:
		r.Verdict = "whole"
	case s.alwaysPartial:
		r.Verdict = "partial"
	case verdict == "failed":
		r.Failed, r.Verdict = len(s.entries) == 0, "partial"
	case (len(s.gaps) > 0 || s.missed) && !s.noGaps:
		r.Verdict = "partial"
	}
	if s.noGaps {
		r.Gaps = []string{}
	}
	return r
}

// xml reads a well-formed document.
func (d *strictDoc) xml(body []byte) error {
	decoder := xml.NewDecoder(bytes.NewReader(body))
	decoder.CharsetReader = charset.NewReaderLabel
	r := &strictXML{strictDoc: d, bases: []string{d.url}}
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			r.text = ""
			if err := r.start(t); err != nil {
				return err
			}
		case xml.CharData:
			r.text += string(t)
		case xml.EndElement:
			r.end(t.Name.Local, strings.TrimSpace(r.text))
			r.text = ""
		}
	}
	if !r.root {
		return errors.New("empty")
	}
	for i := range d.entries {
		d.entries[i].doc = d.updated
	}
	return nil
}

// A strictXML is a document being read.
type strictXML struct {
	*strictDoc
	path, bases []string
	entry       *strictEntry
	text        string
	root        bool
}

func (r *strictXML) start(t xml.StartElement) error {
	base, attr := r.bases[len(r.bases)-1], map[string]string{}
	around := base
	for _, a := range t.Attr {
		attr[a.Name.Local] = a.Value
		if a.Name.Space != spaceXML || a.Name.Local != "base" {
			continue
		}
		if b, err := url.Parse(base); err == nil {
			if u, err := b.Parse(a.Value); err == nil {
				base = u.String()
			}
		}
	}
	r.path, r.bases, r.root = append(r.path, t.Name.Local), append(r.bases, base), true
	depth, name := len(r.path), t.Name
	head := depth == 2 && r.path[0] == "feed" || depth == 3 && r.path[1] == "channel"
	switch {
	case depth > 256:
		return errors.New("too deep")
	case depth == 1 && name.Local != "feed" && name.Local != "rss" && name.Local != "RDF":
		return errors.New("no feed")
	case name.Local == "entry" && depth == 2, name.Local == "item" && (depth == 2 || depth == 3):
		r.entry = &strictEntry{id: attr["about"]}
	case name.Space == spaceFH && (head || r.flagsAnywhere):
		r.complete = r.complete || name.Local == "complete"
		r.archive = r.archive || name.Local == "archive"
	case name.Space == spaceAtom && name.Local == "link" && (depth == 3 && r.linksOfAtomOnly || len(r.entries) > 0 && r.linksBeforeEntries):
	case name.Space == spaceAtom && name.Local == "link" && (head || r.anySource):
		if r.ignoresBaseOnLink {
			base = around
		}
		r.link(cmp.Or(attr["rel"], "alternate"), attr["href"], base)
	case name.Space == spaceAT && name.Local == "deleted-entry":
		if when, _ := time.Parse(time.RFC3339, attr["when"]); !when.Before(r.deleted[attr["ref"]]) {
			r.deleted[attr["ref"]] = when
		}
	}
	return nil
}

func (r *strictXML) end(name, value string) {
	depth := len(r.path)
	inEntry := r.entry != nil && depth > 1 && (r.path[depth-2] == "entry" || r.path[depth-2] == "item")
	r.path, r.bases = r.path[:depth-1], r.bases[:depth]
	switch name {
	case "id", "guid":
		if inEntry {
			r.entry.id = value
		}
	case "title":
		if inEntry {
			r.entry.title = value
		}
	case "updated", "lastBuildDate":
		at, err := time.Parse(time.RFC3339, value)
		if err != nil {
			if at, err = time.Parse(time.RFC1123Z, value); err != nil {
				at, _ = time.Parse(time.RFC1123, value)
			}
		}
		if inEntry {
			r.entry.updated, r.entry.written = at, value
		} else if depth <= 3 && r.entry == nil {
			r.updated = at
		}
	case "published", "link":
		if inEntry && name == "link" {
			r.entry.link = value
		} else if inEntry {
			r.entry.published = value
		}
	case "entry", "item":
		if r.entry != nil && depth <= 3 {
			r.entries, r.entry = append(r.entries, *r.entry), nil
		}
	}
}
