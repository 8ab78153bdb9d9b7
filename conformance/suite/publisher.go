package suite

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/plain"
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
	if err := plain.Check("conformance", plain.Number{Name: "Publisher.Adds", Value: int64(p.Adds)},
		plain.Number{Name: "Publisher.Settle", Value: int64(p.Settle)}); err != nil {
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
	if d.Edit != nil {
		if err := d.step(ctx, "edit", d.Edit); err != nil {
			return err
		}
	}
	if d.Add != nil && d.Edit != nil { // publishers may change archives late, so look once more
		if err := d.step(ctx, "add", d.Add); err != nil {
			return err
		}
		d.report.Added++
	}
	if d.Delete != nil {
		if err := d.step(ctx, "delete", d.Delete); err != nil {
			return err
		}
	}
	d.static(d.last)
	d.unmodified(ctx, d.last)
	d.report.Kind, d.report.Archives = d.last.feed.doc.Kind().String(), len(d.last.archives)
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
	newest := d.last.newest()
	for range cmp.Or(d.Adds, 200) {
		if err := d.step(ctx, "add", d.Add); err != nil {
			return err
		}
		d.report.Added++
		if newest != d.last.newest() && newest != "" || len(d.last.older) > 0 && d.report.Added >= addsToPages {
			return nil
		}
		newest = d.last.newest()
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
	if err != nil {
		return err
	}
	d.compare(ctx, d.last, now, name)
	d.modified(ctx, d.last.feed, now.feed)
	d.last = now
	return nil
}

// pause waits until the second of the feed's Last-Modified is over, if the feed has
// no ETag. Last-Modified cannot tell two versions of the same second apart
// (RFC 9110 §8.8.2.2), which is no fault of the publisher.
func (d *drive) pause(ctx context.Context) error {
	modified, err := http.ParseTime(d.last.feed.modified)
	if err != nil || d.last.feed.etag != "" {
		return nil
	}
	if date, err := http.ParseTime(d.last.feed.date); err == nil && date.Sub(modified) > time.Second {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(1100 * time.Millisecond):
		return nil
	}
}

// settled waits until the subscription document has changed, or Settle has
// passed.
func (d *drive) settled(ctx context.Context) (*snapshot, error) {
	end := time.Now().Add(cmp.Or(d.Settle, 5*time.Second))
	for time.Now().Before(end) {
		page, err := d.get(ctx, d.URL, nil)
		if err == nil && !bytes.Equal(page.body, d.last.feed.body) {
			break
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	return d.snapshot(ctx)
}

// static judges each archive by itself.
func (d *drive) static(s *snapshot) {
	if len(s.older) > 0 {
		for _, page := range s.pages() {
			d.report.saw("paged", page.doc.Kind() == feedhistory.Paged, "%s has none of first, last, previous and next", page.url)
		}
	}
	older := ""
	for i := len(s.archives) - 1; i >= 0; i-- {
		a := s.archives[i]
		current, ok := a.doc.Links.Rel(feedhistory.RelCurrent)
		d.report.saw("current", ok && (current.Href == d.URL || current.Href == s.feed.url), "%s: current is %q", a.url, current.Href)
		d.report.saw("archive", a.doc.Archive, "%s has no fh:archive", a.url)
		d.report.saw("prev-archive", older == "" || a.prev() == older, "%s does not link to %s", a.url, older)
		if next, ok := a.doc.Links.Rel(feedhistory.RelNextArchive); i > 0 {
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
		case page.etag == "" && page.modified == "":
			d.report.saw("not-modified", false, "%s has neither ETag nor Last-Modified", page.url)
		case again.status == http.StatusOK && !bytes.Equal(again.body, page.body): // it has changed after all
		default:
			d.report.saw("not-modified", again.status == http.StatusNotModified, "%s: the answer is %d", page.url, again.status)
		}
	}
}

// modified requests a changed document, conditionally on its old version.
func (d *drive) modified(ctx context.Context, was, now *page) {
	if bytes.Equal(was.body, now.body) || was.etag == "" && was.modified == "" {
		return
	}
	if again, err := d.get(ctx, d.URL, was); err == nil {
		d.report.saw("modified", again.status != http.StatusNotModified, "%s has changed, but the answer is 304", d.URL)
	}
}

// errRead means the feed cannot be read.
var errRead = errors.New("the feed cannot be read")

// readable returns an error if a document cannot be read.
func readable(p *page) error {
	switch {
	case p.status != http.StatusOK:
		return fmt.Errorf("%w: %s: %d %s", errRead, p.url, p.status, http.StatusText(p.status))
	case p.doc == nil:
		return fmt.Errorf("%w: %s: %s", errRead, p.url, strings.TrimSpace(p.err.Error()))
	}
	return nil
}
