package web

import (
	"bytes"
	"context"
	"fmt"
	"html/template"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// drawings draws timelines, and keeps those of some feeds.
type drawings struct {
	store     mirror.Store
	templates *template.Template
	timelines publish.Cache[string, template.HTML]
	documents publish.Cache[string, knownDocuments]
}

// timeline returns the drawing of a feed, with the entries of a list marked in it.
// It is cached, because it rarely changes and is as large as the rest of the
// page.
func (d *drawings) timeline(ctx context.Context, v *feedView, f figures, list *entriesView) (template.HTML, error) {
	key := fmt.Sprintf("%s\n%d %d\n%s\n%s", v.URL, v.Commits, v.Feed.Changed.UnixNano(), list.Newest, list.Here())
	if drawn, ok := d.timelines.Get(key); ok {
		return drawn, nil
	}
	documents, err := d.documentsOf(ctx, v.Feed)
	if err != nil {
		return "", err
	}
	t := newTimeline(v.Feed, f.months, documents, v.Gaps, list)
	if n := len(list.Items); n > 0 {
		from, to := list.Items[n-1].Time, list.Items[0].Time
		if list.Oldest {
			from, to = to, from
		}
		t.here(from, to, list.Here())
	}
	var b bytes.Buffer
	if err := d.templates.ExecuteTemplate(&b, "timeline.html", t); err != nil {
		return "", err
	}
	drawn := template.HTML(b.String()) // written by a template
	d.timelines.Put(key, drawn)
	return drawn, nil
}

// knownDocuments are the documents of a feed at a version.
type knownDocuments struct {
	version int64
	list    []*mirror.DocumentRecord
}

// documentsOf returns a feed's documents, as far as timelines need them.
func (d *drawings) documentsOf(ctx context.Context, feed *mirror.Feed) ([]*mirror.DocumentRecord, error) {
	if known, ok := d.documents.Get(feed.URL); ok && known.version == feed.Commits {
		return known.list, nil
	}
	var list []*mirror.DocumentRecord
	for doc, err := range d.store.Documents(ctx, feed.URL) {
		if err != nil {
			return nil, err
		}
		list = append(list, &mirror.DocumentRecord{URL: doc.URL, Names: doc.Names, Entries: doc.Entries, Oldest: doc.Oldest, Newest: doc.Newest})
	}
	d.documents.Put(feed.URL, knownDocuments{feed.Commits, list})
	return list, nil
}
