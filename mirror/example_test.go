package mirror_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/feedhistory/feedhistory"
	website "github.com/feedhistory/feedhistory/examples/site"
	"github.com/feedhistory/feedhistory/mirror"
)

// The feed closes an archive between two polls.
func Example() {
	documents := map[string]string{
		"/feed":     `<feed xmlns="http://www.w3.org/2005/Atom"><link rel="prev-archive" href="/2025"/><entry><id>urn:2</id><title>Two</title></entry></feed>`,
		"/2025":     `<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>urn:1</id><title>One</title></entry></feed>`,
		"/2026":     `<feed xmlns="http://www.w3.org/2005/Atom"><link rel="prev-archive" href="/2025"/><entry><id>urn:3</id><title>Three</title></entry><entry><id>urn:2</id><title>Two</title></entry></feed>`,
		"/feed-new": `<feed xmlns="http://www.w3.org/2005/Atom"><link rel="prev-archive" href="/2026"/><entry><id>urn:4</id><title>Four</title></entry></feed>`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(documents[r.URL.Path]))
	}))
	defer server.Close()

	m := &mirror.Mirror{
		Store:  mirror.NewMemory(), // or sqlstore's
		Client: &feedhistory.Client{AllowPrivate: true},
	}
	defer m.Client.CloseIdle()
	for range 2 {
		changes, err := m.Update(context.Background(), server.URL+"/feed")
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(changes.Documents, "documents,", changes.Added, "new entries:", changes.Feed.Verdict)
		documents["/feed"] = documents["/feed-new"]
	}
	// Output:
	// 2 documents, 2 new entries: whole
	// 2 documents, 2 new entries: whole
}

// A table is a program's own table of entries, with the memory of one feed. Each Reading
// changes it in one transaction.
type table struct {
	rows   map[string]entry
	ledger []byte // as it is stored
}

// An entry is a row of the table; without a title, it was deleted.
type entry struct{ rank, title string }

// store stores a reading, in one transaction: of each Change, the comment of its Op has the
// statement for a database.
func (t *table) store(r *mirror.Reading) (err error) {
	for _, c := range r.Changes {
		switch row, ok := t.rows[c.ID]; c.Op {
		case mirror.OpPut:
			put := entry{rank: c.Rank}
			if c.Entry != nil {
				put.title = c.Entry.Title().Plain()
			}
			if !ok || c.Rank >= row.rank {
				t.rows[c.ID] = put
			}
		case mirror.OpKeep:
			if ok && row.rank < c.Rank {
				t.rows[c.ID] = entry{c.Rank, row.title}
			}
		case mirror.OpClear:
			for id, row := range t.rows {
				if row.rank >= c.Since && row.rank < c.Rank && row.title != "" {
					t.rows[id] = entry{rank: c.Rank}
				}
			}
		}
	}
	t.ledger, err = json.Marshal(r.Ledger)
	return err
}

// read reads what is new, and continues where earlier walks ended. It stops after a
// number of readings, as though the program were interrupted.
func (t *table) read(m *mirror.Mirror, url string, most int) error {
	var ledger mirror.Ledger
	if t.ledger != nil {
		if err := json.Unmarshal(t.ledger, &ledger); err != nil {
			return err
		}
	}
	for r, err := range m.Poll(context.Background(), url, ledger) {
		if err != nil {
			return err
		}
		if err := t.store(r); err != nil {
			return err
		}
		fmt.Println(len(r.Changes), "changes,", len(t.rows), "entries:", r.Ledger.Feed().Verdict)
		if most--; most == 0 {
			return nil
		}
	}
	return nil
}

// A program that has read a feed by other means begins with the validators it has: as long as the
// feed has not changed, nothing is read.
func ExampleNewLedger() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") == `"1"` {
			w.WriteHeader(http.StatusNotModified)
		}
	}))
	defer server.Close()
	m := &mirror.Mirror{Client: &feedhistory.Client{AllowPrivate: true}}
	defer m.Client.CloseIdle()
	ledger := mirror.NewLedger(server.URL+"/feed", feedhistory.Known{ETag: `"1"`})
	for r, err := range m.Poll(context.Background(), server.URL+"/feed", ledger) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(r.Response.Status, len(r.Changes), "changes:", r.Ledger.Feed().Verdict, r.Ledger.Follows(ledger))
	}
	// Output: 304 0 changes: unknown true
}

// A program with its own tables walks an archived feed, and a paged one. The first walks
// are interrupted, the second ones read the rest, and the third ones only look for news.
func ExampleMirror_Poll() {
	client, home, stop := website.Start()
	defer stop()
	m := &mirror.Mirror{Client: client}
	for _, path := range []string{website.Archived, website.Paged} {
		t := &table{rows: map[string]entry{}}
		for _, most := range []int{1, 100, 100} {
			if err := t.read(m, home+path, most); err != nil {
				fmt.Println(err)
			}
		}
	}
	// Output:
	// 2 changes, 2 entries: partial
	// 1 changes, 3 entries: partial
	// 1 changes, 4 entries: whole
	// 0 changes, 4 entries: whole
	// 0 changes, 4 entries: whole
	// 1 changes, 1 entries: partial
	// 1 changes, 2 entries: lossy
	// 0 changes, 2 entries: lossy
}

// A program asks for the changes since it last looked, deletions included.
func ExampleQuery_changes() {
	store := mirror.NewMemory()
	m := &mirror.Mirror{Store: store}
	ctx, url := context.Background(), "https://example.org/feed.atom"

	merge := func(doc *feedhistory.Document) {
		_, err := m.Keep(ctx, url, mirror.Source{Name: "example", Readings: feedhistory.Readings(doc)})
		if err != nil {
			fmt.Println(err)
		}
	}
	one, _ := feedhistory.ReadEntry(feedhistory.FormatAtom, `<entry xmlns="http://www.w3.org/2005/Atom"><id>urn:1</id></entry>`, "")
	merge(&feedhistory.Document{Entries: []*feedhistory.Entry{one}})

	seen := int64(0) // the program stores it together with what it does with the entries
	look := func() {
		last := seen
		for r, err := range store.Entries(ctx, mirror.Query{Feed: url, AfterCommit: &seen, States: mirror.Current | mirror.Former}) {
			if err != nil {
				fmt.Println(err)
				return
			}
			fmt.Println(r.ID, r.State)
			last = r.LastCommit
		}
		seen = last // not before: several entries may have the same LastCommit
	}
	look()
	merge(&feedhistory.Document{Complete: true}) // the document lacks the entry
	look()
	// Output:
	// urn:1 live
	// urn:1 absent
}

// Two mirrors may share a store; if both are at work on a feed, one gives way.
func ExampleMirror_Update_conflict() {
	m := &mirror.Mirror{Store: mirror.NewMemory()}
	changes, err := m.Update(context.Background(), "http://localhost/feed")
	switch {
	case errors.Is(err, mirror.ErrConflict):
		fmt.Println("another mirror is at work on this feed")
	case err != nil:
		fmt.Println("the store:", err)
	case changes.Failure != nil:
		fmt.Println("the feed:", feedhistory.Describe(changes.Failure))
	}
	// Output: the feed: a loopback, private or special-purpose address
}

// An importer reads a long history bit by bit, with a strict number of requests at a time.
// The Store knows where the next bit begins, even after a restart.
func ExampleMirror_Update_importer() {
	client, home, stop := website.Start()
	defer stop()
	client.Budget = feedhistory.Budget{Documents: 2} // in one Update
	client.Tries = 1                                 // otherwise each document may take three requests
	m := &mirror.Mirror{Store: mirror.NewMemory(), Client: client}
	for more := true; more; {
		report, err := m.Update(context.Background(), home+website.Archived)
		if err != nil {
			fmt.Println(err) // the store's
			return
		}
		if report.Failure != nil {
			fmt.Println(feedhistory.Describe(report.Failure)) // try again at report.Feed.Next
			return
		}
		fmt.Println(report.Documents, "documents,", report.Added, "new entries:", report.Feed.Verdict)
		more = report.More // a polite importer waits until report.Feed.Next
	}
	// Output:
	// 2 documents, 3 new entries: partial
	// 1 documents, 1 new entries: whole
}
