// Package schema has the command's JSON and CSV.
package schema

import (
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/publish"
)

// These types are the command's JSON. A value not given by the feed is absent; a list
// is present even if it is empty.
type (
	Document struct {
		URL       string      `json:"url,omitempty"`
		Format    string      `json:"format"`
		Kind      string      `json:"kind"`
		Complete  bool        `json:"complete"`
		Archive   bool        `json:"archive"`
		ID        string      `json:"id,omitempty"`
		Title     string      `json:"title,omitempty"`
		Updated   string      `json:"updated,omitempty"`
		Published string      `json:"published,omitempty"`
		Links     []Link      `json:"links"`
		Entries   []Entry     `json:"entries"`
		Deleted   []Tombstone `json:"deleted"`
		Notes     []Note      `json:"notes"`
	}
	History struct {
		URL       string          `json:"url,omitempty"`
		Kind      string          `json:"kind"`
		Verdict   string          `json:"verdict"`
		Documents int             `json:"documents"`
		Entries   []*publish.Line `json:"entries"`
		Deleted   []Tombstone     `json:"deleted"`
		Gaps      []Gap           `json:"gaps"`
	}
	Entry struct { // an entry in inspect and in dry runs; other verbs print publish.Lines
		ID        string `json:"id"`
		WeakID    bool   `json:"weak_id"`
		Updated   string `json:"updated,omitempty"`
		Published string `json:"published,omitempty"`
		Title     string `json:"title,omitempty"`
		Links     []Link `json:"links"`
		Source    string `json:"source,omitempty"` // the reader that has kept it
	}
	Link struct {
		Rel      string `json:"rel"`
		Href     string `json:"href"`
		Type     string `json:"type,omitempty"`
		Title    string `json:"title,omitempty"`
		HrefLang string `json:"hreflang,omitempty"`
		Length   string `json:"length,omitempty"`
	}
	Tombstone struct {
		Ref  string `json:"ref"`
		When string `json:"when,omitempty"`
	}
	Note struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	Gap struct {
		URL     string `json:"url"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	}
)

// NewDocument returns the record of a document.
func NewDocument(d *feedhistory.Document) Document {
	return Document{
		URL: d.URL, Format: d.Format.String(), Kind: d.Kind().String(),
		Complete: d.Complete, Archive: d.Archive,
		ID: d.ID, Title: d.Title, Updated: Time(d.Updated), Published: Time(d.Published),
		Links: newLinks(d.Links), Entries: Each(d.Entries, NewEntry), Deleted: Each(d.Deleted, NewTombstone),
		Notes: Each(d.Notes, func(n feedhistory.Note) Note { return Note{n.Code, n.Message} }),
	}
}

// NewHistory returns the record of a history.
func NewHistory(h *feedhistory.History) History {
	j := History{
		Kind: h.Kind.String(), Verdict: h.Verdict().String(), Documents: h.Documents,
		Entries: Each(h.Entries, publish.NewLine), Deleted: Each(h.Deleted, NewTombstone), Gaps: Each(h.Gaps, NewGap),
	}
	if h.Head != nil {
		j.URL = AddressOf(h.Head)
	}
	return j
}

// NewEntry returns the record of an entry.
func NewEntry(e *feedhistory.Entry) Entry {
	return Entry{
		ID: e.ID, WeakID: e.WeakID, Updated: Time(e.Updated), Published: Time(e.Published),
		Title: e.Title().Plain(), Links: newLinks(e.Links), Source: e.KeptBy,
	}
}

func newLinks(links feedhistory.Links) []Link {
	return Each(links, func(l feedhistory.Link) Link { return Link(l) })
}

// NewTombstone returns the record of a deletion.
func NewTombstone(t feedhistory.Tombstone) Tombstone {
	return Tombstone{t.Ref, Time(t.When)}
}

// NewGap returns the record of a gap.
func NewGap(g *feedhistory.Gap) Gap {
	message := explain.Detail(g.Err)
	if g.From != "" && g.From != g.URL {
		message += "; linked from " + g.From
	}
	return Gap{g.URL, g.Reason.String(), message}
}

// Time returns a time by RFC 3339, with its zone and fraction of a second; "" for the
// zero time and for a time RFC 3339 cannot express.
func Time(t time.Time) string {
	if t.IsZero() || t.Year() < 0 || t.Year() > 9999 {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

// Each applies f to each element of a list. The result is never nil.
func Each[T, U any](list []T, f func(T) U) []U {
	out := make([]U, 0, len(list))
	for _, v := range list {
		out = append(out, f(v))
	}
	return out
}

// Second returns a time by this machine's clock in UTC and whole seconds; "" for the
// zero time.
func Second(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return Time(t.UTC().Truncate(time.Second))
}
