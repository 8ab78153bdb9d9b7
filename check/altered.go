package check

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
)

// entriesOf returns the digests of an archive's entries. It must not refer to the
// document's text, which it outlives. Indentation does not count.
func (r *report) entriesOf() entries {
	all := make(entries, len(r.doc.Entries))
	for i, e := range r.doc.Entries {
		if e.WeakID {
			continue // its content may be made from the document's text
		}
		h := sha256.New()
		for word := range strings.FieldsSeq(r.entryText(i)) {
			_, _ = h.Write(append([]byte(word), ' '))
		}
		said := e.Updated.UTC().Format(time.RFC3339Nano) + " " + hex.EncodeToString(h.Sum(nil)[:8])
		all[strings.Clone(e.ID)] = said
	}
	return all
}

// remember compares an archive with the earlier run, and remembers it.
func (c *Chain) remember(r *report) {
	d, feed, url := c.Digests, c.first.url, strings.Clone(r.doc.URL)
	now, has := digestOf(r.doc), r.entriesOf()
	old, known := d.feeds[feed][url]
	had, detailed := d.entries[feed][url]
	if known && old != now {
		what := "they were different, or had different update times"
		if old.Entries != now.Entries {
			what = fmt.Sprintf("there were %d", old.Entries)
		}
		if detailed {
			what += differences(had, has)
		}
		r.absent("archive-changed", "the number of entries is %d; at an earlier run, %s", now.Entries, what)
	}
	if detailed {
		c.edited(r, had, has)
	}
	d.keep(feed, url, now)
	if d.entries == nil {
		d.entries = map[string]map[string]entries{}
	}
	if d.entries[feed] == nil {
		d.entries[feed] = map[string]entries{}
	}
	d.entries[feed][url] = has
}

// differences names the entries added, removed, or with a different time.
func differences(had, has entries) string {
	var came, gone, changed []string
	for id, said := range has {
		switch before, ok := had[id]; {
		case !ok:
			came = append(came, id)
		case timeIn(before) != timeIn(said):
			changed = append(changed, id)
		}
	}
	for id := range had {
		if _, ok := has[id]; !ok {
			gone = append(gone, id)
		}
	}
	text := ""
	for _, part := range []struct {
		ids  []string
		what string
	}{{came, "new"}, {gone, "gone"}, {changed, "with a different time"}} {
		if len(part.ids) > 0 {
			text += "; " + part.what + ": " + some(part.ids)
		}
	}
	return text
}

func timeIn(said string) string {
	t, _, _ := strings.Cut(said, " ")
	return t
}

// some names the first few of many ids.
func some(ids []string) string {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	const most = 3
	text := make([]string, 0, most)
	for _, id := range ids[:min(most, len(ids))] {
		text = append(text, clip(id))
	}
	if len(ids) > most {
		return strings.Join(text, ", ") + fmt.Sprintf(" and %d more", len(ids)-most)
	}
	return strings.Join(text, ", ")
}

// edited reports entries changed since an earlier run without a new time. Readers do
// not read a processed archive again, so they learn of the change only if a newer
// document has the entry with a newer time (5005#17).
func (c *Chain) edited(r *report, had, has entries) {
	var ids []string
	for _, e := range r.doc.Entries {
		before, ok := had[e.ID]
		if now := has[e.ID]; !ok || before == now || timeIn(before) != timeIn(now) {
			continue
		}
		if newer, ok := c.copies[maphash.String(c.seed, e.ID)]; ok && newer.updated > nanoseconds(e.Updated) {
			continue
		}
		ids = append(ids, e.ID)
	}
	if len(ids) > 0 {
		r.absent("archive-edited", "changed since an earlier run without a new update time: %s", some(ids))
	}
}

// isTimed reports whether a document says when anything in it was updated.
func (r *report) isTimed() bool {
	if !r.doc.Updated.IsZero() {
		return true
	}
	return slices.ContainsFunc(r.doc.Entries, func(e *feedhistory.Entry) bool { return !e.Updated.IsZero() })
}
