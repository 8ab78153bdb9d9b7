package main

import (
	"context"
	"errors"
	"iter"
	"net/url"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/schema"
)

// backfillFlags are the flags of verbs that can recover entries to which a feed does
// not link.
type backfillFlags struct {
	Backfill        bool   `help:"If the feed does not link to its older entries, try the methods of its software."`
	BackfillArchive string `placeholder:"URL" help:"Do the same as --backfill, and then ask a web archive: \"wayback\", or the beginning of the URLs of its TimeMaps."`
}

// Validate refuses an archive that is neither a URL nor "wayback".
func (f *backfillFlags) Validate() error {
	if f.BackfillArchive == "" || f.BackfillArchive == "wayback" {
		return nil
	}
	if u, err := url.Parse(f.BackfillArchive); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("--backfill-archive: neither an http or https URL nor \"wayback\": " + f.BackfillArchive)
	}
	return nil
}

// A walk reads the documents of a feed and, if the flags ask for it, recovers entries
// to which the feed does not link.
type walk struct {
	documents iter.Seq2[*feedhistory.Document, error]
	result    func(*feedhistory.History) *backfill.Result
}

// walk returns a walk of a feed, with the methods that the flags ask for.
func (f *backfillFlags) walk(ctx context.Context, client *feedhistory.Client, url string) walk {
	b := f.backfill(client)
	if b == nil {
		return walk{client.Walk(ctx, url, nil), func(h *feedhistory.History) *backfill.Result {
			return &backfill.Result{History: h}
		}}
	}
	w := b.Walk(ctx, url, backfill.Probe{}, nil)
	return walk{w.Documents(), w.Result}
}

// backfill returns the Backfill that the flags ask for; nil if they do not ask for one.
func (f *backfillFlags) backfill(client *feedhistory.Client) *backfill.Backfill {
	if !f.Backfill && f.BackfillArchive == "" {
		return nil
	}
	return &backfill.Backfill{HTTP: client, Methods: f.methods()}
}

func (f *backfillFlags) methods() []backfill.Method {
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

// verdictText says what a verdict means for a history of which a method may have
// recovered a part.
func (f *backfillFlags) verdictText(r *backfill.Result) string {
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

// documentOf returns a history as one document.
func documentOf(r *backfill.Result) *feedhistory.Document {
	doc := r.History.Document()
	doc.Complete = r.Verdict() == feedhistory.Whole
	return doc
}

// jsonRecovered is the JSON of a history, with the method that recovered it.
type jsonRecovered struct {
	schema.History
	RecoveredBy string `json:"recovered_by,omitempty"`
}

func recoveredJSON(r *backfill.Result) jsonRecovered {
	j := jsonRecovered{schema.NewHistory(r.History), r.RecoveredBy}
	j.Verdict = r.Verdict().String()
	return j
}

// jsonInspected is the JSON of a document, with the methods that --backfill would try.
type jsonInspected struct {
	schema.Document
	Backfill []string `json:"backfill,omitempty"`
}

// applicable returns the names of the methods for the software that a document names.
func applicable(doc *feedhistory.Document) (names []string) {
	sure, _ := new(backfill.Backfill).Candidates(doc)
	for _, m := range sure {
		names = append(names, m.Name())
	}
	return names
}
