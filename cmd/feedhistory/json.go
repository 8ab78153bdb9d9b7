package main

import (
	"io"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/publish"
)

// These types are the command's JSON. A value that the feed does not give is absent; a
// list is present even if it is empty.
type (
	jsonDocument struct {
		URL      string          `json:"url,omitempty"`
		Format   string          `json:"format"`
		Kind     string          `json:"kind"`
		Complete bool            `json:"complete"`
		Archive  bool            `json:"archive"`
		ID       string          `json:"id,omitempty"`
		Title    string          `json:"title,omitempty"`
		Updated  string          `json:"updated,omitempty"`
		Links    []jsonLink      `json:"links"`
		Entries  []jsonEntry     `json:"entries"`
		Deleted  []jsonTombstone `json:"deleted"`
		Notes    []jsonNote      `json:"notes"`
	}
	jsonHistory struct {
		URL       string               `json:"url,omitempty"`
		Kind      string               `json:"kind"`
		Verdict   string               `json:"verdict"`
		Documents int                  `json:"documents"`
		Entries   []*publish.JSONEntry `json:"entries"`
		Deleted   []jsonTombstone      `json:"deleted"`
		Gaps      []jsonGap            `json:"gaps"`
	}
	jsonEntry struct { // an entry in inspect and in dry runs; other verbs print publish.JSONEntries
		ID        string     `json:"id"`
		WeakID    bool       `json:"weak_id"`
		Updated   string     `json:"updated,omitempty"`
		Published string     `json:"published,omitempty"`
		Title     string     `json:"title,omitempty"`
		Links     []jsonLink `json:"links"`
	}
	jsonLink struct {
		Rel  string `json:"rel"`
		Href string `json:"href"`
		Type string `json:"type,omitempty"`
	}
	jsonTombstone struct {
		Ref  string `json:"ref"`
		When string `json:"when,omitempty"`
	}
	jsonNote struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	jsonGap struct {
		URL     string `json:"url"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}
)

func documentJSON(d *feedhistory.Document) jsonDocument {
	return jsonDocument{
		URL: d.URL, Format: d.Format.String(), Kind: d.Kind().String(),
		Complete: d.Complete, Archive: d.Archive,
		ID: d.ID, Title: d.Title, Updated: timeJSON(d.Updated),
		Links: linksJSON(d.Links), Entries: each(d.Entries, entryJSON), Deleted: each(d.Deleted, tombstoneJSON),
		Notes: each(d.Notes, func(n feedhistory.Note) jsonNote { return jsonNote{n.Code, n.Message} }),
	}
}

func historyJSON(h *feedhistory.History) jsonHistory {
	j := jsonHistory{
		Kind: h.Kind.String(), Verdict: h.Verdict().String(), Documents: h.Documents,
		Entries: each(h.Entries, publish.NewJSONEntry), Deleted: each(h.Deleted, tombstoneJSON), Gaps: each(h.Gaps, gapJSON),
	}
	if h.Head != nil {
		j.URL = addressOf(h.Head)
	}
	return j
}

func entryJSON(e *feedhistory.Entry) jsonEntry {
	return jsonEntry{
		ID: e.ID, WeakID: e.WeakID, Updated: timeJSON(e.Updated), Published: timeJSON(e.Published),
		Title: e.Title().Plain(), Links: linksJSON(e.Links),
	}
}

func linksJSON(links feedhistory.Links) []jsonLink {
	return each(links, func(l feedhistory.Link) jsonLink { return jsonLink{l.Rel, l.Href, l.Type} })
}

func tombstoneJSON(t feedhistory.Tombstone) jsonTombstone {
	return jsonTombstone{t.Ref, timeJSON(t.When)}
}

func gapJSON(g *feedhistory.Gap) jsonGap {
	message := detail(g.Err)
	if g.From != "" && g.From != g.URL {
		message += "; linked from " + g.From
	}
	return jsonGap{g.URL, g.Reason.String(), message}
}

// timeJSON returns a time by RFC 3339, with its zone and fraction of a second; "" for the
// zero time and for a time that RFC 3339 cannot express.
func timeJSON(t time.Time) string {
	if t.IsZero() || t.Year() < 0 || t.Year() > 9999 {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

// each applies f to each element of a list. The result is never nil.
func each[T, U any](list []T, f func(T) U) []U {
	out := make([]U, 0, len(list))
	for _, v := range list {
		out = append(out, f(v))
	}
	return out
}

// printLine writes a value as one line of JSON, as --json promises.
func printLine(w io.Writer, value any) error { return terminal.WriteJSON(w, value) }

// harmless escapes the characters in JSON that could control a terminal.
func harmless(text []byte) []byte { return terminal.JSON(text) }
