package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/publish"
)

// This file prints entries as their documents arrive, and leaves out those the flags do
// not ask for.
//
// The newest documents arrive first, and a history begins with the newest entries: so
// fetch prints an entry when it first sees it. A feed whose older documents have newer
// copies breaks a rule (5005#16); fetch prints such a copy at the end, and so it does with
// the deletion of a printed entry.

// take prints the entries new in a document.
func (f *feedFetch) take(doc *feedhistory.Document, err error) error {
	if gap, ok := errors.AsType[*feedhistory.Gap](err); ok && doc == nil {
		doc = gap.Document
	}
	if doc == nil || f.printed == nil {
		return nil
	}
	if f.of == "" {
		f.of = schema.AddressOf(doc)
	}
	for _, t := range doc.Deleted {
		if before, ok := f.gone[t.Ref]; !ok || t.When.After(before) {
			f.gone[t.Ref] = t.When
		}
	}
	for _, e := range doc.Entries {
		if f.printed[e.ID] != nil || f.isGone(e) || !f.wants(e) {
			continue
		}
		if err := f.printEntry(e); err != nil {
			return err
		}
	}
	return f.out.Flush()
}

// isGone reports whether a tombstone already received may delete an entry. If it turns
// out not to delete the entry, printRest prints the entry.
func (f *feedFetch) isGone(e *feedhistory.Entry) bool {
	when, ok := f.gone[e.ID]
	return ok && (when.IsZero() || e.Updated.IsZero() || !when.Before(e.Updated))
}

// printEntry prints an entry as one line.
func (f *feedFetch) printEntry(e *feedhistory.Entry) error {
	if f.printed != nil {
		f.printed[e.ID] = e
	}
	if f.Format == tableFormat {
		link, _ := e.Links.Rel(feedhistory.RelAlternate)
		_, err := fmt.Fprintln(f.out, show.Line(&terminal.Page{Width: terminal.Width(f.Stdout)}, e, e.Time(), cmp.Or(link.Href, e.ID)))
		return err
	}
	record := publish.NewLine(e)
	record.Feed, record.Private = f.of, f.isPrivate(f.of)
	return terminal.WriteJSON(f.out, record)
}

// printRest prints the unprinted rest of the history: entries of which a newer copy
// arrived later, entries not deleted by a tombstone after all, and deletions of printed
// entries.
func (f *feedFetch) printRest(h *feedhistory.History) error {
	live := make(map[string]bool, len(h.Entries))
	for _, e := range h.Entries {
		live[e.ID] = true
		before := f.printed[e.ID]
		if before == e {
			continue
		}
		if before != nil {
			f.twice++
		}
		if err := f.printEntry(e); err != nil {
			return err
		}
	}
	for _, t := range h.Deleted {
		if f.printed[t.Ref] == nil || live[t.Ref] {
			continue
		}
		f.twice++
		if f.Format == tableFormat {
			continue
		}
		if err := terminal.WriteJSON(f.out, schema.DeletionRecord(f.of, t)); err != nil {
			return err
		}
	}
	return nil
}

// wants reports whether an entry may be as recent as --since asks for: it was published or
// updated since, or has no time.
func (f *feedFetch) wants(e *feedhistory.Entry) bool {
	return f.Since.IsZero() || e.Time().IsZero() || !e.Time().Before(f.Since.Time) || !e.Changed().Before(f.Since.Time)
}

// latest returns the n entries with the latest times, in the given order. If an entry has
// no time, it returns the first n entries.
func latest(entries []*feedhistory.Entry, n int) []*feedhistory.Entry {
	if len(entries) <= n {
		return entries
	}
	if slices.ContainsFunc(entries, func(e *feedhistory.Entry) bool { return e.Time().IsZero() }) {
		return entries[:n]
	}
	sorted := slices.Clone(entries)
	slices.SortStableFunc(sorted, func(a, b *feedhistory.Entry) int { return b.Time().Compare(a.Time()) })
	keep := map[*feedhistory.Entry]bool{}
	for _, e := range sorted[:n] {
		keep[e] = true
	}
	return slices.DeleteFunc(slices.Clone(entries), func(e *feedhistory.Entry) bool { return !keep[e] })
}

// wanted returns the entries of a history within --since.
func (f *feedFetch) wanted(h *feedhistory.History) []*feedhistory.Entry {
	entries := make([]*feedhistory.Entry, 0, len(h.Entries))
	for _, e := range h.Entries {
		if f.wants(e) {
			entries = append(entries, e)
		}
	}
	return entries
}

// restrict removes from a history the entries the flags do not ask for. If there may be
// such entries, the history is a window at best: neither the history nor a feed made of it
// is complete.
func (f *feedFetch) restrict(h *feedhistory.History) {
	entries := f.wanted(h)
	if f.Limit > 0 {
		entries = latest(entries, f.Limit)
	}
	f.limited = len(entries) < len(h.Entries)
	h.Entries = entries
	if !f.limited || h.Head == nil {
		return
	}
	h.Head.Coverage = &feedhistory.Coverage{Of: h.Head.URL, Kind: h.Kind, Verdict: feedhistory.Worse(h.Verdict(), feedhistory.Window)}
}

// meaning explains the verdict, given the entries the flags ask for.
func (f *feedFetch) meaning(r *backfill.Recovery) string {
	if !f.limited {
		return f.VerdictText(r)
	}
	what := "the entries since " + f.Since.UTC().Format(time.RFC3339)
	switch {
	case f.Limit > 0 && !f.Since.IsZero():
		what = fmt.Sprintf("the latest %d of %s", f.Limit, what)
	case f.Limit > 0:
		what = "the latest " + terminal.Count(f.Limit, "entry", "entries")
	}
	text := "You asked only for " + what
	switch f.verdict {
	case feedhistory.Whole:
		return text + ", and they are all here."
	case feedhistory.Window:
		return text + "; the feed does not say whether there were others before its latest entries."
	case feedhistory.Lossy:
		return text + "; as pages shift while a feed grows, some of them may have slipped through."
	}
	return text + ", and some of them may be missing:"
}
