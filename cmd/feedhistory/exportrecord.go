package main

import (
	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// recordOf is an entry as publish reads it, or its deletion.
func recordOf(r *mirror.Record) (*publish.Record, error) {
	if d := deletionOf(r); d.Deleted {
		return &publish.Record{ID: r.ID, Deleted: d}, nil
	}
	e, err := r.Entry()
	if err != nil {
		return nil, err
	}
	record := &publish.Record{
		ID: e.ID, Updated: timeJSON(e.Updated), Published: timeJSON(e.Published),
		Title: textOf(e.Title()), Summary: textOf(e.Summary()), Content: textOf(e.Content()),
		Links: each(e.Links, func(l feedhistory.Link) publish.RecordLink { return publish.RecordLink(l) }),
	}
	// Of an entry with more extensions than can be decoded, what could be is there.
	if item, _ := e.Decode(); item != nil {
		for _, a := range item.Authors {
			record.Authors = append(record.Authors, publish.RecordAuthor{Name: a.Name, Email: a.Email})
		}
		for _, term := range item.Categories {
			record.Categories = append(record.Categories, publish.RecordCategory{Term: term})
		}
	}
	return record, nil
}

// textOf is a text as publish reads it. XHTML that is not well-formed any more,
// after its references were made absolute or its errors repaired, is HTML:
// publish would refuse it, and readers make the same of it.
func textOf(t feedhistory.Text) publish.RecordText {
	switch t.Type {
	case feedhistory.TextPlain:
		t.Base = "" // there is nothing to resolve
	case feedhistory.TextXHTML:
		probe := publish.Record{ID: "urn:probe", Content: publish.RecordText(t)}
		if _, err := probe.Entry(); err != nil {
			t.Type = feedhistory.TextHTML
		}
	}
	return publish.RecordText(t)
}
