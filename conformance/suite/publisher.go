package suite

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/check"
	"github.com/feedhistory/feedhistory/internal/settings"
)

// A PublisherTest is a test of a publisher: it is made to add, edit and delete
// entries, and its documents are compared after each step. Use a publisher for
// tests, because the added entries stay. A nil step is skipped.
type PublisherTest struct {
	URL    string                          // the URL of the subscription document
	Add    func(ctx context.Context) error // adds one entry
	Edit   func(ctx context.Context) error // changes one entry
	Delete func(ctx context.Context) error // deletes one entry
	Adds   int                             // maximum number of entries to add until an archive is closed; zero means 200
	Settle time.Duration                   // maximum time until the effect of a step is visible; zero means 5 s
	HTTP   *http.Client                    // nil means a client with a timeout of a minute
}

// Shell returns a step that runs a command line in a shell. Its environment has
// CONFORMANCE_URL, the address of the feed, and CONFORMANCE_STEP, a number, different
// in each step, so each step can publish something different.
func Shell(url, line string) func(ctx context.Context) error {
	n := 0
	return func(ctx context.Context) error {
		n++
		cmd := exec.CommandContext(ctx, "sh", "-c", line)
		cmd.Env = append(os.Environ(), "CONFORMANCE_URL="+url, fmt.Sprintf("CONFORMANCE_STEP=%d", n))
		cmd.WaitDelay = time.Second
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", line, err, bytes.TrimSpace(out))
		}
		return nil
	}
}

// Run tests the publisher. An error means a step failed, the feed cannot be read, or a
// number is negative; or it is the context's.
func (p *PublisherTest) Run(ctx context.Context) (*PublisherReport, error) {
	if err := settings.Check("conformance", settings.Number{Name: "Publisher.Adds", Value: int64(p.Adds)},
		settings.Number{Name: "Publisher.Settle", Value: int64(p.Settle)}); err != nil {
		return nil, err
	}
	d := &drive{PublisherTest: p, http: p.HTTP, report: &PublisherReport{Version: version, URL: p.URL, Duties: duties()}}
	if d.http == nil {
		d.http = &http.Client{Timeout: time.Minute}
	}
	for _, duty := range d.report.Duties {
		duty.Outcome = Silent
	}
	err := d.run(ctx)
	return d.report, err
}

// A drive is the test of a publisher under way.
type drive struct {
	*PublisherTest
	http   *http.Client
	report *PublisherReport
	last   *snapshot
}

func (d *drive) run(ctx context.Context) error {
	var err error
	if d.last, err = d.snapshot(ctx); err != nil {
		return err
	}
	if err := d.add(ctx); err != nil {
		return err
	}
	late := d.Add // publishers may change archives late, so look once more
	if d.Edit == nil {
		late = nil
	}
	for _, s := range []struct {
		name string
		do   func(context.Context) error
	}{{"edit", d.Edit}, {"add", late}, {"delete", d.Delete}} {
		if s.do == nil {
			continue
		}
		if err := d.step(ctx, s.name, s.do); err != nil {
			return err
		}
	}
	d.chain(d.last, "last")
	d.static(d.last)
	d.unmodified(ctx, d.last)
	d.report.Kind, d.report.Archives = string(d.last.feed.doc.Kind()), len(d.last.archives)
	if d.report.Archives == 0 && len(d.last.older) == 0 {
		d.report.Notes = append(d.report.Notes, "No archive was ever closed, so the duties about archives could not be tested.")
	}
	return nil
}

// addsToPages is how many entries are added to a paged feed, which closes no
// archive.
const addsToPages = 5

// add adds entries until an archive has been closed, and then one more.
func (d *drive) add(ctx context.Context) error {
	if d.Add == nil {
		return nil
	}
	newest := d.last.feed.rel("prev-archive")
	for range cmp.Or(d.Adds, 200) {
		if err := d.step(ctx, "add", d.Add); err != nil {
			return err
		}
		now := d.last.feed.rel("prev-archive")
		if newest != now && newest != "" || len(d.last.older) > 0 && d.report.Added >= addsToPages {
			return nil
		}
		newest = now
	}
	return nil
}

// step runs a step, and compares the documents with those before.
func (d *drive) step(ctx context.Context, name string, step func(context.Context) error) error {
	if err := d.pause(ctx); err != nil {
		return err
	}
	if err := step(ctx); err != nil {
		return err
	}
	now, err := d.settled(ctx)
	if err == nil && len(chainFaults(now)) > 0 { // it may still be writing
		if err = sleep(ctx, d.settle()); err == nil {
			now, err = d.snapshot(ctx)
		}
	}
	if err != nil {
		return err
	}
	d.chain(now, name)
	d.compare(ctx, d.last, now, name)
	d.modified(ctx, d.last.feed, now.feed)
	if d.last = now; name == "add" {
		d.report.Added++
	}
	return nil
}

// pause waits until the second of the feed's Last-Modified is over, if the feed has
// no ETag. Last-Modified cannot tell two versions of the same second apart
// (RFC 9110 §8.8.2.2), which is no fault of the publisher.
func (d *drive) pause(ctx context.Context) error {
	header := d.last.feed.header
	modified, err := http.ParseTime(header.Get("Last-Modified"))
	if err != nil || header.Get("ETag") != "" {
		return nil
	}
	if date, err := http.ParseTime(header.Get("Date")); err == nil && date.Sub(modified) > time.Second {
		return nil
	}
	return sleep(ctx, 1100*time.Millisecond)
}

func sleep(ctx context.Context, wait time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}

// settled waits until the subscription document has changed, or Settle has
// passed.
func (d *drive) settled(ctx context.Context) (*snapshot, error) {
	end := time.Now().Add(d.settle())
	for time.Now().Before(end) {
		page, err := d.get(ctx, d.URL, nil)
		if err == nil && !bytes.Equal(page.body, d.last.feed.body) {
			break
		}
		if err := sleep(ctx, 50*time.Millisecond); err != nil {
			return nil, err
		}
	}
	return d.snapshot(ctx)
}

// settle returns the Settle with its default.
func (d *drive) settle() time.Duration { return cmp.Or(d.Settle, 5*time.Second) }

// chainFaults returns the errors of RFC 5005 that package check finds in all documents.
func chainFaults(s *snapshot) (faults []check.Finding) {
	var chain check.Chain
	for _, p := range s.pages() {
		faults = append(faults, chain.Add(p.doc)...)
	}
	return slices.DeleteFunc(append(faults, chain.Finish()...), func(f check.Finding) bool {
		return f.Level != check.Error || !strings.Contains(f.Clause, "5005")
	})
}

// chain judges all documents together, after a step.
func (d *drive) chain(s *snapshot, step string) {
	faults := chainFaults(s)
	d.report.saw("chain", len(faults) == 0, "")
	for _, f := range faults {
		d.report.saw("chain", false, "after the step %s: %s: %s (%s)", step, f.URL, f.Message, f.Code)
	}
	if len(s.archives) > 0 {
		d.report.saw("subscription", !s.feed.doc.Archive, "after the step %s: %s has fh:archive, so readers may never ask for it again", step, s.feed.url)
	}
}

// static judges each archive by itself.
func (d *drive) static(s *snapshot) {
	if len(s.older) > 0 {
		for _, page := range s.pages() {
			d.report.saw("paged", page.doc.Kind() == feedhistory.KindPaged, "%s has none of first, last, previous and next", page.url)
		}
	}
	older := ""
	for i := len(s.archives) - 1; i >= 0; i-- {
		a := s.archives[i]
		current, ok := a.doc.Links.Rel("current")
		d.report.saw("current", ok && (current.Href == d.URL || current.Href == s.feed.url), "%s: current is %q", a.url, current.Href)
		d.report.saw("archive", a.doc.Archive, "%s has no fh:archive", a.url)
		d.report.saw("prev-archive", older == "" || a.rel("prev-archive") == older, "%s does not link to %s", a.url, older)
		if next, ok := a.doc.Links.Rel("next-archive"); i > 0 {
			d.report.saw("next-archive", ok && next.Href == s.archives[i-1].url, "%s: next-archive is %q", a.url, next.Href)
		}
		older = a.url
	}
}

// unmodified requests every document again, conditionally.
func (d *drive) unmodified(ctx context.Context, s *snapshot) {
	for _, page := range s.pages() {
		again, err := d.get(ctx, page.url, page)
		switch {
		case err != nil:
		case !page.hasValidator():
			d.report.saw("not-modified", false, "%s has neither ETag nor Last-Modified", page.url)
		case again.status == http.StatusOK && !bytes.Equal(again.body, page.body): // it has changed after all
		default:
			d.report.saw("not-modified", again.status == http.StatusNotModified, "%s: the answer is %d", page.url, again.status)
		}
	}
}

// modified requests a changed document, conditionally on its old version.
func (d *drive) modified(ctx context.Context, was, now *page) {
	if bytes.Equal(was.body, now.body) || !was.hasValidator() {
		return
	}
	if again, err := d.get(ctx, d.URL, was); err == nil {
		d.report.saw("modified", again.status != http.StatusNotModified, "%s has changed, but the answer is 304", d.URL)
	}
}

// errRead means the feed cannot be read.
var errRead = errors.New("the feed cannot be read")

// read reads a document. An error means there is none.
func (d *drive) read(ctx context.Context, url string) (*page, error) {
	p, err := d.get(ctx, url, nil)
	switch {
	case err != nil:
		return nil, err
	case p.status != http.StatusOK:
		return nil, fmt.Errorf("%w: %s: %d %s", errRead, p.url, p.status, http.StatusText(p.status))
	case p.doc == nil:
		return nil, fmt.Errorf("%w: %s: %s", errRead, p.url, strings.TrimSpace(p.err.Error()))
	}
	d.report.saw("well-formed", p.err == nil, "%s: %v", p.url, p.err)
	return p, nil
}

// Limits for reading a publisher.
const (
	mostArchives = 1000
	mostBytes    = 16 << 20 // of one document
)

// A page is a document as it was served.
type page struct {
	url    string
	status int
	header http.Header
	body   []byte
	doc    *feedhistory.Document
	err    error
}

// rel returns the address to which a relation leads, or "".
func (p *page) rel(name string) string {
	link, _ := p.doc.Links.Rel(name)
	return link.Href
}

func (p *page) hasValidator() bool {
	return p.header.Get("ETag")+p.header.Get("Last-Modified") != ""
}

// A snapshot is everything a publisher has published at some time.
type snapshot struct {
	feed     *page
	archives []*page // newest first
	older    []*page // the other pages of a paged feed, which has no archives
}

// pages returns all documents, newest first.
func (s *snapshot) pages() []*page {
	return slices.Concat([]*page{s.feed}, s.archives, s.older)
}

// entries returns the newest copy of each entry.
func (s *snapshot) entries() map[string]*feedhistory.Entry {
	entries := map[string]*feedhistory.Entry{}
	for _, p := range s.pages() {
		for _, e := range p.doc.Entries {
			if known := entries[e.ID]; known == nil || e.Updated.After(known.Updated) {
				entries[e.ID] = e
			}
		}
	}
	return entries
}

// get reads a document, unless it is the given one.
func (d *drive) get(ctx context.Context, url string, unless *page) (*page, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if unless != nil {
		if etag := unless.header.Get("ETag"); etag != "" {
			req.Header.Set("If-None-Match", etag)
		} else if modified := unless.header.Get("Last-Modified"); modified != "" {
			req.Header.Set("If-Modified-Since", modified)
		}
	}
	resp, err := d.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostBytes))
	if err != nil {
		return nil, err
	}
	p := &page{url: resp.Request.URL.String(), status: resp.StatusCode, header: resp.Header, body: body}
	if p.status == http.StatusOK {
		p.doc, p.err = feedhistory.Parse(bytes.NewReader(body), p.url)
	}
	return p, nil
}

// snapshot reads everything. An error means there is no subscription document.
func (d *drive) snapshot(ctx context.Context) (*snapshot, error) {
	feed, err := d.read(ctx, d.URL)
	if err != nil {
		return nil, err
	}
	s := &snapshot{feed: feed}
	if feed.rel("prev-archive") == "" && feed.rel("next") != "" {
		s.older, err = d.follow(ctx, feed, "paged", "next")
	} else {
		s.archives, err = d.follow(ctx, feed, "prev-archive", "prev-archive")
	}
	return s, err
}

// follow reads the documents of a chain of links. The duty is to keep the chain whole.
func (d *drive) follow(ctx context.Context, from *page, duty, rel string) (chain []*page, err error) {
	seen := map[string]bool{from.url: true}
	for url := from.rel(rel); url != ""; {
		if len(chain) == mostArchives {
			return chain, fmt.Errorf("there are more than %d documents: try a feed that has fewer", mostArchives)
		}
		if seen[url] {
			d.report.saw(duty, false, "%s is linked to twice: the chain has no end", url)
			return chain, nil
		}
		seen[url] = true
		next, err := d.read(ctx, url)
		if err != nil {
			d.report.saw(duty, false, "%v", err)
			return chain, nil
		}
		d.report.saw(duty, true, "")
		next.url = url // as in the link to it
		chain = append(chain, next)
		url = next.rel(rel)
	}
	return chain, nil
}

// compare judges the changes of a step.
func (d *drive) compare(ctx context.Context, was, now *snapshot, step string) {
	before, after := was.entries(), now.entries()
	tombstones := map[string]time.Time{}
	for _, p := range now.pages() {
		for _, t := range p.doc.Deleted {
			if when, ok := tombstones[t.Ref]; !ok || t.When.After(when) {
				tombstones[t.Ref] = t.When
			}
		}
	}
	var gone, added, changed []string
	for id, e := range before {
		switch new := after[id]; {
		case new == nil:
			gone = append(gone, id)
		case !e.Updated.Equal(new.Updated) || says(e) != says(new):
			changed = append(changed, id)
		}
	}
	for id := range after {
		if before[id] == nil {
			added = append(added, id)
		}
	}
	r := d.report
	r.saw("document-times", bytes.Equal(was.feed.body, now.feed.body) || now.feed.doc.Updated.After(was.feed.doc.Updated),
		"the step %s changed the document, but not to a later time: from %s to %s", step, at(was.feed.doc.Updated), at(now.feed.doc.Updated))
	switch step {
	case "add":
		r.saw("newest", len(added) > 0 && inFeed(now, added), "the added entry is not in the subscription document")
		r.saw("kept", len(gone) == 0, "after an addition, %q are in no document", gone)
	case "edit":
		r.saw("ids", len(added) == 0 || len(changed) > 0, "the step edit made the new entries %q", added)
		r.saw("newest", inFeed(now, append(changed, added...)) && len(changed)+len(added) > 0, "the edited entry is not in the subscription document")
		for _, id := range changed {
			r.saw("entry-times", after[id].Updated.After(before[id].Updated), "%s changed, but its time is still %s", id, at(before[id].Updated))
		}
		r.saw("kept", len(gone) == 0, "after an edit, %q are in no document", gone)
	case "delete":
		told := len(gone) > 0
		for ref, when := range tombstones {
			old := before[ref]
			if told = told || old != nil; old != nil {
				r.saw("tombstone", !when.Before(old.Updated), "the tombstone of %s is of %s, but the entry of %s: readers keep it", ref, at(when), at(old.Updated))
			}
		}
		r.saw("deletion", told, "every entry is where it was, and there is no tombstone")
		r.saw("kept", len(gone) <= 1, "after one deletion, %q are in no document", gone)
	}
	d.compareArchives(ctx, was, now, step)
}

// compareArchives judges the fate of the archives of the previous step.
func (d *drive) compareArchives(ctx context.Context, was, now *snapshot, step string) {
	for i, a := range was.archives {
		at := slices.IndexFunc(now.archives, func(p *page) bool { return p.url == a.url })
		if at < 0 {
			d.lost(ctx, a, step)
			continue
		}
		d.report.saw("addresses", true, "")
		b := now.archives[at]
		same := slices.Equal(ids(a), ids(b))
		d.report.saw("entries", same, "the step %s changed the entries of %s", step, a.url)
		if i == 0 && step == "add" {
			d.report.saw("closed", same, "an addition changed the entries of %s", a.url)
		}
		unchanged := bytes.Equal(a.body, b.body) || i == 0 && bytes.Equal(withoutNext(a.body), withoutNext(b.body))
		d.report.saw("bytes", unchanged, "the step %s changed %s", step, a.url)
	}
}

// lost judges an archive no link leads to any more: either it is gone, or only its
// chain is broken.
func (d *drive) lost(ctx context.Context, a *page, step string) {
	if p, err := d.get(ctx, a.url, nil); err == nil && p.status == http.StatusOK {
		d.report.saw("prev-archive", false, "after the step %s, no link leads to %s", step, a.url)
	} else {
		d.report.saw("addresses", false, "after the step %s, %s is no longer there", step, a.url)
	}
}

var nextLink = regexp.MustCompile(`<[\w:]*link\b[^>]*next-archive[^>]*>(\s*</[\w:]*link>)?\s*`)

// withoutNext removes the links to the next archive from a document.
func withoutNext(body []byte) []byte { return nextLink.ReplaceAll(body, nil) }

func ids(p *page) []string {
	var ids []string
	for _, e := range p.doc.Entries {
		ids = append(ids, e.ID)
	}
	slices.Sort(ids)
	return ids
}

// says returns an entry's content, independent of its document's markup.
func says(e *feedhistory.Entry) string {
	return fmt.Sprintf("%q %q %q", e.Title().Body, e.Summary().Body, e.Content().Body)
}

// inFeed reports whether the subscription document has one of the entries.
func inFeed(s *snapshot, ids []string) bool {
	return slices.ContainsFunc(s.feed.doc.Entries, func(e *feedhistory.Entry) bool { return slices.Contains(ids, e.ID) })
}

func at(t time.Time) string {
	if t.IsZero() {
		return "none"
	}
	return t.Format(time.RFC3339)
}

// A Duty is a duty of a publisher, and the outcome of testing it.
type Duty struct {
	Name     string   `json:"name"`
	Clause   string   `json:"clause"` // such as 5005#9
	Basis    string   `json:"basis"`
	Strength string   `json:"strength"`
	Text     string   `json:"text"`               // the duty in words
	Outcome  Outcome  `json:"outcome"`            // none if nothing happened to show it
	Messages []string `json:"messages,omitempty"` // the first few faults
}

// duties returns all duties of a publisher.
func duties() []*Duty {
	return []*Duty{
		{Name: "well-formed", Clause: "XML 1.0 §2.1", Basis: basisRFC, Strength: must, Text: "Every document can be read to its end."},
		{Name: "newest", Clause: "5005#8", Basis: basisRFC, Strength: must, Text: "Added and changed entries are in the subscription document."},
		{Name: "kept", Clause: "5005 §4", Basis: basisGoal, Strength: must, Text: "A published entry stays in the feed until it is deleted."},
		{Name: "ids", Clause: "RFC 4287 §4.2.6", Basis: basisRFC, Strength: must, Text: "An entry that changes keeps its id."},
		{Name: "paged", Clause: "5005#5", Basis: basisRFC, Strength: must, Text: "Every page of a paged feed can be read, and has first, last, previous or next."},
		{Name: "prev-archive", Clause: "5005#11", Basis: basisRFC, Strength: must, Text: "A chain of prev-archive links leads to every archive."},
		{Name: "next-archive", Clause: "5005#12", Basis: basisRFC, Strength: should, Text: "Every archive but the newest links to the next with next-archive."},
		{Name: "current", Clause: "5005#13", Basis: basisRFC, Strength: should, Text: "Every archive links to the subscription document with current."},
		{Name: "archive", Clause: "5005#14", Basis: basisRFC, Strength: should, Text: "Every archive is marked with fh:archive."},
		{Name: "closed", Clause: "5005#15", Basis: basisRFC, Strength: must, Text: "No link leads to an archive that is still being filled."},
		{Name: "subscription", Clause: "5005#14", Basis: basisRFC, Strength: must, Text: "The subscription document is not marked with fh:archive."},
		{Name: "chain", Clause: "5005 §4", Basis: basisRFC, Strength: must, Text: "The links and marks of all documents agree, after each step."},
		{Name: "entries", Clause: "5005#9", Basis: basisRFC, Strength: should, Text: "The set of an archive's entries does not change."},
		{Name: "addresses", Clause: "5005#10", Basis: basisRFC, Strength: should, Text: "An archive's address does not change."},
		{Name: "bytes", Clause: "5005#9", Basis: basisGoal, Strength: should, Text: "An archive stays the same to the byte, which is more than the clause asks; the newest may gain its next-archive."},
		{Name: "entry-times", Clause: "5005#16", Basis: basisRFC, Strength: should, Text: "A changed entry has a later time than before."},
		{Name: "document-times", Clause: "5005#21", Basis: basisRFC, Strength: should, Text: "A changed subscription document has a later time than before."},
		{Name: "deletion", Clause: "RFC 6721", Basis: basisGoal, Strength: should, Text: "A deleted entry has a tombstone, or is in no document any more."},
		{Name: "tombstone", Clause: "RFC 6721 §3", Basis: basisRFC, Strength: must, Text: "A tombstone is not older than its entry, so readers follow it."},
		{Name: "not-modified", Clause: "RFC 9110 §13.1", Basis: basisHTTP, Strength: should, Text: "A conditional request for an unchanged document is answered with 304."},
		{Name: "modified", Clause: "RFC 9110 §8.8", Basis: basisHTTP, Strength: must, Text: "A conditional request for a changed document is not answered with 304."},
	}
}

// A PublisherReport is the result of testing a publisher.
type PublisherReport struct {
	Version  string   `json:"version"`         // the version of the suite
	URL      string   `json:"url"`             // the URL of the subscription document
	Kind     string   `json:"kind"`            // the kind of the feed at the end
	Archives int      `json:"archives"`        // the number of archives at the end
	Added    int      `json:"added"`           // how many entries were added
	Notes    []string `json:"notes,omitempty"` // sentences about the duties not tested
	Duties   []*Duty  `json:"duties"`
}

// Failed reports whether the publisher breaks a "must".
func (r *PublisherReport) Failed() bool {
	return slices.ContainsFunc(r.Duties, func(d *Duty) bool { return d.Outcome == Failed })
}

// WriteText writes the report as text.
func (r *PublisherReport) WriteText(w io.Writer) error {
	fmt.Fprintf(w, "%s: %s, %d archives after %d additions\n", r.URL, r.Kind, r.Archives, r.Added)
	for _, d := range r.Duties {
		fmt.Fprintf(w, "%-5s %-7s %s (%s, %s)\n", d.Outcome, d.Strength, d.Text, d.Basis, d.Clause)
		for _, message := range d.Messages {
			fmt.Fprintf(w, "              %s\n", message)
		}
	}
	_, err := io.WriteString(w, strings.Join(append([]string{""}, r.Notes...), "\n")+"\n")
	return err
}

// mostMessages is the maximum number of messages for a duty.
const mostMessages = 5

// saw records one observation of a duty. The message is the fault if the duty does not
// hold.
func (r *PublisherReport) saw(duty string, holds bool, message string, args ...any) {
	for _, d := range r.Duties {
		switch {
		case d.Name != duty:
		case holds && d.Outcome == Silent:
			d.Outcome = Passed
		case !holds:
			d.Outcome = Failed
			if d.Strength == should {
				d.Outcome = Warned
			}
			if len(d.Messages) < mostMessages {
				d.Messages = append(d.Messages, fmt.Sprintf(message, args...))
			}
		}
	}
}
