package check

import (
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/vocab"
)

// This file checks Atom-PMH 1.0 in one document. An entry with an alternate
// link and no content is active, or historical if its record has a later entry.
// An entry with empty content and no alternate link is a deletion.

// pmh checks the producer's duties within one document.
func (r *report) pmh() {
	d := r.doc
	if d.Format != feedhistory.Atom || r.out.native == vocab.Atom03 {
		r.absent("pmh-not-atom", "the document is %v, not Atom 1.0", d.Format)
		return
	}
	if !d.Complete && r.has(feedhistory.RelNext, feedhistory.RelPrevious, feedhistory.RelFirst, feedhistory.RelLast) {
		r.add("pmh-not-archived", r.historyAt(), "the feed is paged: pages shift, so that a harvest can miss records")
	}
	if d.Updated.IsZero() {
		r.absent("pmh-time-missing", "the feed has no updated")
	}
	latest := make(map[string]time.Time, len(d.Entries))
	for _, e := range d.Entries {
		if t, ok := latest[e.ID]; !ok || e.Updated.After(t) {
			latest[e.ID] = e.Updated
		}
	}
	for i, e := range d.Entries {
		place := r.entry(i)
		if e.Updated.IsZero() {
			r.add("pmh-time-missing", place.at, "entry %s has no updated", clip(e.ID))
		} else if !d.Updated.IsZero() && e.Updated.After(d.Updated) {
			r.add("pmh-feed-older-than-entry", place.at, "entry %s was updated %s, the feed %s",
				clip(e.ID), stamp(e.Updated), stamp(d.Updated))
		}
		if place.at != nowhere { // the model does not say whether there is content
			r.pmhEntry(e, place, latest[e.ID].After(e.Updated))
		}
	}
}

// pmhEntry checks the kind of an entry.
func (r *report) pmhEntry(e *feedhistory.Entry, place entryPlace, historical bool) {
	alternate, kind := false, "active"
	for _, link := range e.Links {
		if link.Rel != feedhistory.RelAlternate {
			continue
		}
		alternate = true
		if link.Type == "" {
			r.add("pmh-alternate-without-type", place.at, "entry %s: the link to %s has no type", clip(e.ID), clip(link.Href))
		}
	}
	if historical {
		kind = "historical"
	}
	switch {
	case alternate && place.content == emptyContent:
		r.add("pmh-deletion-with-alternate", place.at, "entry %s is a deletion by its empty content, but has an alternate link", clip(e.ID))
	case alternate && place.content == someContent:
		r.add("pmh-"+kind+"-content", place.at, "the %s entry %s has content", kind, clip(e.ID))
	case !alternate && place.content == someContent:
		r.add("pmh-deletion-content", place.at, "entry %s has content and no alternate link: it is of no known kind", clip(e.ID))
	case !alternate && place.content == noContent && historical:
		r.add("pmh-historical-alternate-missing", place.at, "the historical entry %s has no alternate link", clip(e.ID))
	case !alternate && place.content == noContent:
		r.add("pmh-alternate-missing", place.at, "entry %s has neither an alternate link nor the empty content of a deletion", clip(e.ID))
	}
}
