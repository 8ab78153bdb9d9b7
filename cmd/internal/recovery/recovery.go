// Package recovery has the flags for recovering entries to which a feed does not link, and
// for the budget of doing so.
package recovery

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
)

// Backfill are the flags for recovering entries to which a feed does not link.
type Backfill struct {
	Backfill        bool   `help:"If the feed does not link to its older entries, try the methods of its software."`
	BackfillArchive string `placeholder:"URL" help:"Do the same as --backfill, and then ask a web archive: \"wayback\", or the beginning of the URLs of its TimeMaps."`
}

// Validate refuses an archive other than a URL or "wayback".
func (f *Backfill) Validate() error {
	if f.BackfillArchive == "" || f.BackfillArchive == "wayback" || argument.IsWeb(f.BackfillArchive) {
		return nil
	}
	return errors.New("--backfill-archive: neither an http or https URL nor \"wayback\": " + f.BackfillArchive)
}

// A walk reads the documents of a feed and, if the flags ask for it, recovers entries
// to which the feed does not link.
type walk struct {
	Documents iter.Seq2[*feedhistory.Document, error]
	Result    func(*feedhistory.History) *backfill.Recovery
}

// Walk returns a walk of a feed, with the methods the flags ask for.
func (f *Backfill) Walk(ctx context.Context, client *feedhistory.Client, url string) walk {
	b := f.Methods(client)
	if b != nil && len(client.Policy.Credentials) > 0 {
		b.Methods = WithoutArchives(b.Methods) // they would learn the address of a private feed
	}
	if b == nil {
		return walk{client.Walk(ctx, url, nil), func(h *feedhistory.History) *backfill.Recovery {
			return &backfill.Recovery{History: h}
		}}
	}
	w := b.Walk(ctx, url, backfill.Probe{}, nil)
	return walk{w.Documents(), w.Recovery}
}

// Methods returns the Backfill the flags ask for; nil if they do not ask for one.
func (f *Backfill) Methods(client *feedhistory.Client) *backfill.Backfill {
	if !f.Backfill && f.BackfillArchive == "" {
		return nil
	}
	return &backfill.Backfill{HTTP: client, Methods: f.methods()}
}

func (f *Backfill) methods() []backfill.Method {
	methods := backfill.Methods()
	switch f.BackfillArchive {
	case "":
	case "wayback":
		methods = append(methods, backfill.Memento{})
	default:
		methods = append(methods, backfill.Memento{TimeMap: f.BackfillArchive})
	}
	return methods
}

// VerdictText is the meaning of a verdict for a history of which a method may have
// recovered a part.
func (f *Backfill) VerdictText(r *backfill.Recovery) string {
	v := r.Verdict()
	by := "Recovered by " + r.RecoveredBy
	switch {
	case r.RecoveredBy == "" && v == feedhistory.Window && (f.Backfill || f.BackfillArchive != ""):
		text := explain.VerdictText(v) + " No method found any"
		if r.Probe.Reason != "" {
			text += ": " + r.Probe.Reason
		}
		return text + "."
	case r.RecoveredBy == "":
		return explain.VerdictText(v)
	case v == feedhistory.Whole:
		return by + ": every entry that the server counted is here."
	case v == feedhistory.Lossy:
		return by + ", which the feed itself does not declare: entries may have slipped through."
	}
	return by + ". " + explain.VerdictText(v)
}

// DocumentOf returns a history as one document.
func DocumentOf(r *backfill.Recovery) *feedhistory.Document {
	doc := r.History.Document()
	doc.Entries = append(r.History.PseudoEntries(), doc.Entries...)
	doc.Complete = r.Verdict() == feedhistory.Whole
	return doc
}

// History is the JSON of a history, with the method of its recovery.
type History struct {
	schema.History
	RecoveredBy string `json:"recovered_by,omitempty"`
}

// NewHistory returns the history of a backfill.
func NewHistory(r *backfill.Recovery) History {
	j := History{schema.NewHistory(r.History), r.RecoveredBy}
	j.Verdict = r.Verdict().String()
	return j
}

// Budget are the flags for limiting the requests and the bytes for one feed.
type Budget struct {
	MaxDocuments int           `default:"10000" placeholder:"N" help:"Request at most N documents of a feed (default: ${default})."`
	MaxBytes     argument.Size `default:"1GiB" placeholder:"SIZE" help:"Read at most this much of a feed, such as 10MB (default: ${default})."`
}

// Check refuses a budget of zero documents or bytes.
func (f *Budget) Check() error {
	switch {
	case f.MaxDocuments < 1:
		return errors.New("--max-documents: at least 1")
	case f.MaxBytes < 1:
		return errors.New("--max-bytes: at least 1")
	}
	return nil
}

// Limits returns the budget of a walk by the flags.
func (f *Budget) Limits() feedhistory.Budget {
	return feedhistory.Budget{Documents: f.MaxDocuments, Bytes: int64(f.MaxBytes)}
}

// WithoutArchives returns the methods that ask nobody but the feed's own server.
func WithoutArchives(methods []backfill.Method) []backfill.Method {
	return slices.DeleteFunc(slices.Clone(methods), func(m backfill.Method) bool {
		_, asks := m.(backfill.Memento)
		return asks
	})
}

// Applicable returns the names of the methods for the software named by a document.
func Applicable(doc *feedhistory.Document) (names []string) {
	sure, _ := new(backfill.Backfill).Candidates(doc)
	for _, m := range sure {
		names = append(names, m.Name())
	}
	return names
}
