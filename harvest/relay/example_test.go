package relay_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http/httptest"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/harvest/datareplication"
	"github.com/feedhistory/feedhistory/harvest/relay"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// A mirrored feed is given out as a log of its entries. When the feed is removed from the
// mirror and added again, the log has to begin again, too.
func ExampleJournal() {
	ctx, url := context.Background(), "https://example.org/feed.atom"
	store := mirror.NewMemory()
	m := &mirror.Mirror{Store: store}
	merge := func(ids ...string) {
		for _, id := range ids {
			if _, err := m.Merge(ctx, url, mirror.Source{Name: "example", Documents: document(id), Adds: true}); err != nil {
				panic(err)
			}
		}
	}
	merge("urn:1", "urn:2")

	journal := &relay.Journal{Upstream: relay.Upstream{Store: store, URL: url}, Output: &publish.MemoryOutput{}}
	server := httptest.NewServer(journal)
	defer server.Close()
	journal.Base = server.URL
	h := datareplication.Harvester{URL: server.URL, HTTP: &feedhistory.Client{AllowPrivate: true}}
	defer h.HTTP.CloseIdle()
	for e, err := range h.Harvest(ctx, datareplication.Mark{}).Entities() {
		if err != nil {
			panic(err)
		}
		fmt.Println(e.Operation, e.Header.Get(relay.EntryID))
	}

	if err := store.Remove(ctx, url); err != nil {
		panic(err)
	}
	merge("urn:1")
	if e, ok := errors.AsType[*harvest.Error](journal.Update(ctx)); ok && e.Code == harvest.ErrReplaced {
		fmt.Println("remove the journal of", e.URL)
	}
	// Output:
	// PUT urn:1
	// PUT urn:2
	// remove the journal of https://example.org/feed.atom
}

// document yields a document with one entry.
func document(id string) iter.Seq2[*feedhistory.Document, error] {
	return func(yield func(*feedhistory.Document, error) bool) {
		entry, err := compose.Draft{ID: id, Updated: time.Date(2003, 12, 13, 18, 30, 2, 0, time.UTC)}.Entry()
		if err != nil {
			panic(err)
		}
		yield(&feedhistory.Document{Title: "Feed", Entries: []*feedhistory.Entry{entry}}, nil)
	}
}
