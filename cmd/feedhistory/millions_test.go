package main

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/harvest/atompmh"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror/sqlstore"
)

var (
	harvested     = flag.Int("harvested", 3000, "the number of records to harvest")
	harvestKills  = flag.Int("harvest-kills", feedtest.Count(2), "how often a harvest is killed")
	harvestPage   = flag.Int("harvest-page", 0, "the number of records in a document of atom-pmh; zero means its default")
	harvestBy     = flag.String("harvest-by", "", "the only protocol to harvest by")
	harvestMemory = flag.Int64("harvest-memory", 0, "the most MB a harvest may take")
)

// TestMillions harvests generated records into a database with the command, kills it at
// random moments, and begins again: the result has each record once, and a kill makes it ask
// again for one document, besides the feed's own. The long form measures
// memory and time:
//
//	go test -run TestMillions -v -timeout 0 -harvested 10000000 -harvest-by modified-range -harvest-memory 100 ./cmd/feedhistory
func TestMillions(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the memory of a child is measured on Linux")
	}
	t.Parallel()
	for protocol, handler := range map[string]func(base string) http.Handler{
		"atom-pmh": generatedPMH, "modified-range": generatedRange, "datareplication": generatedPages,
	} {
		if *harvestBy == "" || *harvestBy == protocol {
			t.Run(protocol, func(t *testing.T) {
				t.Parallel()
				testMillions(t, protocol, handler)
			})
		}
	}
}

func testMillions(t *testing.T, protocol string, handler func(base string) http.Handler) {
	var mu sync.Mutex
	asked := map[string]int{} // requests by what they ask for
	heads := 0
	server := httptest.NewUnstartedServer(nil)
	served := handler("http://" + server.Listener.Addr().String() + "/")
	server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if r.Method == http.MethodHead {
			heads++
		} else {
			asked[r.URL.String()+" "+r.Header.Get("Modified-Range")]++
		}
		mu.Unlock()
		served.ServeHTTP(w, r)
	})
	server.Start()
	defer server.Close()
	run := func(db string, limit time.Duration) (finished bool, took time.Duration, memory int64) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		if limit > 0 {
			ctx, cancel = context.WithTimeout(ctx, limit)
			defer cancel()
		}
		c := exec.CommandContext(ctx, "feedhistory", "harvest", "--protocol", protocol, "--allow-private", "--db", db,
			"--max-requests", "1000000", "--max-bytes", "100GB", "--max-items", "100000000", "--quota", "100GB", "--quota-entries", "100000000", server.URL+"/")
		var said bytes.Buffer
		c.Stderr = &said
		began := time.Now()
		err := c.Run()
		if limit > 0 && ctx.Err() != nil {
			return false, limit, 0
		}
		require.NoError(t, err, said.String())
		return true, time.Since(began), maxRSS(c.ProcessState)
	}
	whole := filepath.Join(t.TempDir(), "whole.db")
	_, took, memory := run(whole, 0)
	unbroken, _, looked := takeRequests(&mu, &asked, &heads)
	requireRecords(t, whole, server.URL+"/")
	if *harvestKills == 0 {
		t.Logf("%s: %d records, %d MB, %v, %d requests and %d by HEAD", protocol, *harvested, memory>>20, took.Round(100*time.Millisecond), unbroken, looked)
		return
	}
	killed := filepath.Join(t.TempDir(), "killed.db")
	random := feedtest.Random(0)
	kills, finished := 0, false
	limit := 2 * took / time.Duration(*harvestKills+1) // the average lets all kills come before the end
	for kills < *harvestKills && !finished {
		if finished, _, _ = run(killed, time.Duration(random.Int64N(int64(limit)+1))); !finished {
			kills++
		}
		_, again := countRequests(&mu, asked)
		require.LessOrEqual(t, again, kills) // the document under way
	}
	if !finished {
		run(killed, 0)
	}
	requireRecords(t, killed, server.URL+"/")
	broken, again, lookedAgain := takeRequests(&mu, &asked, &heads)
	t.Logf("%s: %d records, %d MB, %v, %d requests and %d by HEAD; after %d kills %d and %d, %d of them again", protocol, *harvested, memory>>20,
		took.Round(100*time.Millisecond), unbroken, looked, kills, broken, lookedAgain, again)
	require.LessOrEqual(t, again, kills)
	if *harvestMemory > 0 {
		require.LessOrEqual(t, memory>>20, *harvestMemory)
	}
}

// countRequests returns the number of documents requested, and how many of them again. The
// feed itself is the first request of each harvest, so it does not count as requested again.
func countRequests(mu *sync.Mutex, asked map[string]int) (documents, again int) {
	mu.Lock()
	defer mu.Unlock()
	for what, n := range asked {
		if documents += n; what != "/ " && what != "/ /" {
			again += n - 1
		}
	}
	return documents, again
}

// takeRequests returns the same with the number of HEAD requests, and resets the counts.
func takeRequests(mu *sync.Mutex, asked *map[string]int, heads *int) (documents, again, looked int) {
	documents, again = countRequests(mu, *asked)
	mu.Lock()
	defer mu.Unlock()
	looked = *heads
	*asked, *heads = map[string]int{}, 0
	return documents, again, looked
}

// requireRecords requires a mirror with each generated record.
func requireRecords(t *testing.T, file, url string) {
	db, err := sql.Open("sqlite", sqlstore.SQLiteDSN(file))
	require.NoError(t, err)
	defer db.Close()
	store, err := sqlstore.Open(t.Context(), db, sqlstore.SQLite)
	require.NoError(t, err)
	f, err := store.Feed(t.Context(), url)
	require.NoError(t, err)
	require.Equal(t, int64(*harvested), f.Entries)
	require.Empty(t, f.Ledger.Gaps())
	require.Zero(t, f.Deleted)
}

// generatedAt returns the time of a generated record.
func generatedAt(i int) time.Time {
	return time.Date(2010, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(i) * 20 * time.Second)
}

// generated yields the numbers of the records in a range, the most recent first.
func generated(start, end time.Time, limit int) (numbers []int) {
	last := *harvested - 1
	if !end.IsZero() {
		last = min(last, int((end.Sub(generatedAt(0))-1)/(20*time.Second)))
	}
	for i := last; i >= 0 && !generatedAt(i).Before(start) && len(numbers) < cmp.Or(limit, last+1); i-- {
		if end.IsZero() || generatedAt(i).Before(end) {
			numbers = append(numbers, i)
		}
	}
	return numbers
}

func generatedPMH(base string) http.Handler {
	return &atompmh.Handler{URL: base, Size: *harvestPage, Items: func(_ context.Context, start, end time.Time, limit int) (items []atompmh.Item, err error) {
		for _, i := range generated(start, end, limit) {
			n := strconv.Itoa(i)
			items = append(items, atompmh.Item{ID: "urn:record:" + n, Modified: generatedAt(i), Title: "The record number " + n,
				Representations: []atompmh.Representation{{URL: "https://example.org/records/" + n, Type: "application/rdf+xml"}}})
		}
		return items, nil
	}}
}

func generatedRange(string) http.Handler {
	return &modifiedrange.Handler{Items: func(_ context.Context, start, end time.Time, limit int) (items []modifiedrange.Item, err error) {
		for _, i := range generated(start, end, limit) {
			n := strconv.Itoa(i)
			e, err := compose.Draft{ID: "urn:record:" + n, Updated: generatedAt(i), Title: feedhistory.Text{Body: "The record number " + n}}.Entry()
			if err != nil {
				return nil, err
			}
			items = append(items, modifiedrange.Item{Modified: generatedAt(i), Entry: e})
		}
		return items, nil
	}}
}

// generatedPages serves pages of entities.
func generatedPages(base string) http.Handler {
	const size = 1000
	pages := (*harvested + size - 1) / size
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number, err := strconv.Atoi(strings.Trim(r.URL.Path, "/"))
		if err != nil {
			number = pages
		}
		last := min(number*size, *harvested)
		header := w.Header()
		header.Set("Content-Type", "multipart/mixed; boundary=generated")
		header.Set("Last-Modified", generatedAt(last-1).Format(http.TimeFormat))
		header.Add("Link", fmt.Sprintf("<%s%d>; rel=self", base, number))
		if number > 1 {
			header.Add("Link", fmt.Sprintf("<%s%d>; rel=prev", base, number-1))
		}
		if number < pages {
			header.Add("Link", fmt.Sprintf("<%s%d>; rel=next", base, number+1))
		}
		if r.Method == http.MethodHead {
			return
		}
		var b bytes.Buffer
		for i := (number - 1) * size; i < last; i++ {
			fmt.Fprintf(&b, "--generated\r\nContent-Type: text/plain\r\nLast-Modified: %s\r\nContent-ID: urn:record:%d\r\nOperation-Type: http-equiv=PUT\r\n\r\nThe record number %d\r\n",
				generatedAt(i).Format(http.TimeFormat), i, i)
		}
		b.WriteString("--generated--\r\n")
		_, _ = w.Write(b.Bytes())
	})
}
