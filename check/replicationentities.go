package check

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"hash/maphash"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/replication"
)

// entities checks the entities of one page as they come.
type entities struct {
	*pageWalker
	page *replication.Page
	n    int

	first, last time.Time // first and last stamp
	sum         hash.Hash // of all entities so far

	known   digest // of an earlier run
	isKnown bool
	then    string // the digest of as many entities as there were then
}

func (w *pageWalker) newEntities(page *replication.Page) *entities {
	e := &entities{pageWalker: w, page: page, sum: sha256.New()}
	if w.Digests != nil {
		e.known, e.isKnown = w.Digests.feeds[w.feed][page.Key()]
	}
	return e
}

// entity checks an entity.
func (e *entities) entity(part replication.Part) {
	e.n++
	id := strings.TrimSpace(part.Header.Get(replication.FieldID))
	what := fmt.Sprintf("entity %d, %q", e.n, clip(id))
	for _, name := range []string{replication.FieldType, replication.FieldModified, replication.FieldID, replication.FieldOperation} {
		if strings.TrimSpace(part.Header.Get(name)) == "" {
			e.add("dr-header-missing", e.page.URL, "%s has no %s", what, strings.ReplaceAll(name, "Id", "ID"))
		}
	}
	e.operation(what, part.Header.Get(replication.FieldOperation), replication.Operation(part.Header))
	if err := part.Check(); err != nil {
		e.add("dr-length", e.page.URL, "%s: %v", what, err)
	}
	e.stamp(what, part.Header.Get(replication.FieldModified))
	if key := maphash.String(e.seed, id); id != "" && e.ids[key] {
		e.add("dr-id-repeated", e.page.URL, "%s has the Content-ID of another", what)
	} else if len(e.ids) < mostKnownIDs {
		e.ids[key] = true
	}
	e.digest(id, part)
}

// operation checks the operation of an entity, as written and as read.
func (e *entities) operation(what, written, read string) {
	known := []string{"PUT", "DELETE", "PATCH"}
	switch {
	case strings.TrimSpace(written) == "":
	case !slices.Contains(known, read):
		e.add("dr-operation-unknown", e.page.URL, "%s has the Operation-Type %q", what, clip(written))
	case written != "http-equiv="+read:
		e.add("dr-operation", e.page.URL, "%s has the Operation-Type %q", what, clip(written))
	}
}

// stamp checks when an entity was modified.
func (e *entities) stamp(what, written string) {
	at, err := replication.ParseTime(written)
	switch {
	case written == "":
		return
	case err != nil:
		e.add("dr-header-missing", e.page.URL, "%s: Last-Modified %v", what, err)
		return
	case at.Before(e.last):
		e.add("dr-stamps-decrease", e.page.URL, "%s is stamped %s, after one of %s", what, stamp(at), stamp(e.last))
	}
	e.timeForm(e.page, what, written)
	e.last = at
	if e.first.IsZero() {
		e.first = at
	}
}

// digest adds an entity to the digest of its page.
func (e *entities) digest(id string, part replication.Part) {
	for _, s := range []string{id, part.Header.Get(replication.FieldType), part.Header.Get(replication.FieldModified), replication.Operation(part.Header)} {
		_, _ = io.WriteString(e.sum, s+"\n") // writing to a hash does not fail
	}
	body := sha256.Sum256(part.Body)
	e.sum.Write(body[:])
	if e.n == e.known.Entries {
		e.then = e.digestSoFar()
	}
}

func (e *entities) digestSoFar() string { return hex.EncodeToString(e.sum.Sum(nil)) }

// end checks a page after all of it has been read.
func (e *entities) end() {
	if e.n == 0 {
		e.add("dr-page-empty", e.page.URL, "the page has no entities")
		return
	}
	if !e.page.Modified.IsZero() && !e.last.IsZero() && !e.page.Modified.Equal(e.last) {
		e.add("dr-page-stamp", e.page.URL, "Last-Modified of the page is %s, of its last entity %s", stamp(e.page.Modified), stamp(e.last))
	}
	if !e.oldest.IsZero() && e.last.After(e.oldest) {
		e.add("dr-stamps-decrease", e.newer.URL, "the first entity is stamped %s, after one of %s on the page before, %s",
			stamp(e.oldest), stamp(e.last), clip(e.page.Key()))
	}
	e.oldest = e.first
	if e.Digests != nil {
		e.compare()
	}
}

// compare compares the page with the earlier run, and remembers it
// (datareplication#feed-6).
func (e *entities) compare() {
	now := digest{Entries: e.n, Digest: e.digestSoFar(), Prev: e.page.Prev, Next: e.page.Next}
	old := e.known
	switch {
	case !e.isKnown:
	case e.then != old.Digest:
		e.add("dr-page-changed", e.page.URL, "its first %d entities have changed since an earlier run", old.Entries)
	case old.Next != "" && e.n > old.Entries:
		e.add("dr-page-changed", e.page.URL, "at an earlier run it had %d entities and a next page already; now it has %d", old.Entries, e.n)
	case old.Next != "" && old.Next != now.Next:
		e.add("dr-page-changed", e.page.URL, "at an earlier run next was %s; now it is %q", clip(old.Next), clip(now.Next))
	case now.Prev != "" && old.Prev != now.Prev:
		e.add("dr-page-changed", e.page.URL, "at an earlier run prev was %q; now it is %s", clip(old.Prev), clip(now.Prev))
	}
	e.Digests.keep(e.feed, e.page.Key(), now)
}
