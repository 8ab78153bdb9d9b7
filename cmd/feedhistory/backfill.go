package main

import (
	"context"
	"errors"
	"iter"
	"net/url"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
)

// The flags of verbs that can recover entries that a feed does not link to.
type backfillFlags struct {
	Backfill        bool   `help:"If the feed does not link to its older entries, try the methods of its software."`
	BackfillArchive string `placeholder:"URL" help:"If that does not help, ask a web archive: the beginning of the URLs of its TimeMaps, or \"wayback\"."`
}

// Validate refuses an archive that is no URL.
func (f *backfillFlags) Validate() error {
	if f.BackfillArchive == "" || f.BackfillArchive == "wayback" {
		return nil
	}
	if u, err := url.Parse(f.BackfillArchive); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return errors.New("--backfill-archive: neither an http or https URL nor \"wayback\": " + f.BackfillArchive)
	}
	return nil
}

// A walk may recover more than a feed links to.
type walk struct {
	documents iter.Seq2[*feedhistory.Document, error]
	result    func(*feedhistory.History) *backfill.Result
}

// walk walks a feed as the flags ask.
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

// backfill returns what the flags ask for; nil if they ask for nothing.
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

// verdictText says what a verdict means if something may have been recovered.
func (f *backfillFlags) verdictText(r *backfill.Result) string {
	v := r.Verdict()
	by := "Recovered by " + r.RecoveredBy
	switch {
	case r.RecoveredBy == "" && v == feedhistory.Window && (f.Backfill || f.BackfillArchive != ""):
		text := verdictText(v) + " No way to them was found"
		if r.Probe.Reason != "" {
			text += ": " + r.Probe.Reason
		}
		return text + "."
	case r.RecoveredBy == "":
		return verdictText(v)
	case v == feedhistory.Whole:
		return by + ": every entry that the server counted is here."
	case v == feedhistory.Lossy:
		return by + ", which the feed itself does not declare: entries may have slipped through."
	}
	return by + ". " + verdictText(v)
}

// documentOf is a history as one document.
func documentOf(r *backfill.Result) *feedhistory.Document {
	doc := r.History.Document()
	doc.Complete = r.Verdict() == feedhistory.Whole
	return doc
}

// jsonRecovered is the JSON of a history, with the method that recovered it.
type jsonRecovered struct {
	jsonHistory
	RecoveredBy string `json:"recovered_by,omitempty"`
}

func recoveredJSON(r *backfill.Result) jsonRecovered {
	j := jsonRecovered{historyJSON(r.History), r.RecoveredBy}
	j.Verdict = r.Verdict().String()
	return j
}

// jsonInspected is the JSON of a document, with the methods that --backfill would try.
type jsonInspected struct {
	jsonDocument
	Backfill []string `json:"backfill,omitempty"`
}

// applicable names the methods for the software that a document names.
func applicable(doc *feedhistory.Document) (names []string) {
	sure, _ := new(backfill.Backfill).Candidates(doc)
	for _, m := range sure {
		names = append(names, m.Name())
	}
	return names
}
