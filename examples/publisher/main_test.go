package main

import (
	"fmt"
	"io/fs"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/publish"
)

func TestMain(m *testing.M) { feedtest.Main(m) }

// A site serves what is published in a directory.
func site(t *testing.T, dir string) (p *publish.Publisher, base string) {
	server := httptest.NewUnstartedServer(nil)
	base = "http://" + server.Listener.Addr().String() + "/feeds/"
	p = newPublisher(dir, base)
	server.Config.Handler = handler(p)
	server.Start()
	t.Cleanup(server.Close)
	return p, base
}

// read returns the titles that a reader sees, and the verdict.
func read(t *testing.T, p *publish.Publisher) (titles []string, verdict feedhistory.Verdict) {
	t.Helper()
	client := &feedhistory.Client{AllowPrivate: true}
	defer client.CloseIdle()
	history, err := client.Fetch(t.Context(), p.URL())
	require.NoError(t, err)
	for _, e := range history.Entries {
		titles = append(titles, e.Title().Plain())
	}
	slices.Sort(titles)
	return titles, history.Verdict()
}

func TestUpdate(t *testing.T) {
	p, base := site(t, t.TempDir())
	expect := func(posts []Post, want publish.Report, titles ...string) {
		t.Helper()
		done, err := update(t.Context(), p, base, posts)
		require.NoError(t, err)
		require.Equal(t, want, *done)
		got, verdict := read(t, p)
		require.Equal(t, titles, got)
		require.Equal(t, feedhistory.VerdictWhole, verdict)
	}
	expect(posts, publish.Report{New: 3, Archives: 2}, "One", "Three", "Two")
	expect(posts, publish.Report{Unchanged: 3}, "One", "Three", "Two")

	edited := slices.Clone(posts)
	edited[0].Title = "Uno" // it is in an archive, and the time of the edit is unknown
	expect(edited, publish.Report{Unchanged: 2, Changed: 1, Dated: 1, Archives: 1}, "Three", "Two", "Uno")
	expect(edited, publish.Report{Unchanged: 3}, "Three", "Two", "Uno")
	edited[1].Title, edited[1].Edited = "Due", time.Now().Add(time.Second).UTC()
	expect(edited, publish.Report{Unchanged: 2, Changed: 1}, "Due", "Three", "Uno")

	expect(edited[:2], publish.Report{Unchanged: 2, Deleted: 1}, "Due", "Uno")
}

// A lost archive is written again, or reported.
func TestLost(t *testing.T) {
	dir := t.TempDir()
	p, base := site(t, dir)
	_, err := update(t.Context(), p, base, posts)
	require.NoError(t, err)
	names, err := fs.Glob(os.DirFS(dir), "feed/2003/10-*")
	require.NoError(t, err)
	require.Len(t, names, 1)
	require.NoError(t, os.Remove(dir+"/"+names[0]))
	_, verdict := read(t, p)
	require.Equal(t, feedhistory.VerdictPartial, verdict)

	done, err := update(t.Context(), newPublisher(dir, base), base, posts)
	require.NoError(t, err)
	require.Equal(t, names, done.Restored)
	_, verdict = read(t, p)
	require.Equal(t, feedhistory.VerdictWhole, verdict)

	require.NoError(t, os.Remove(dir+"/"+names[0]))
	edited := slices.Clone(posts)
	edited[0].Title = "Uno"
	_, err = update(t.Context(), newPublisher(dir, base), base, edited)
	require.ErrorContains(t, err, names[0])
}

// many returns posts of ten years.
func many() (all []Post) {
	for i := range 120 {
		all = append(all, Post{
			ID: fmt.Sprint("urn:post:", i), Address: fmt.Sprint("/", i), Title: fmt.Sprintf("%03d", i),
			Published: time.Date(1994, time.Month(1+i), 13, 18, 30, 2, 0, time.UTC),
		})
	}
	return all
}

// The process is killed at any moment; the next run publishes the rest.
func TestKilled(t *testing.T) {
	if dir := os.Getenv("PUBLISHER_DIRECTORY"); dir != "" {
		base := os.Getenv("PUBLISHER_BASE")
		_, err := update(t.Context(), newPublisher(dir, base), base, many())
		require.NoError(t, err)
		return
	}
	dir := t.TempDir()
	p, base := site(t, dir)
	random := feedtest.Random(0)
	for range feedtest.Count(40) {
		cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
		cmd.Env = append(os.Environ(), "PUBLISHER_DIRECTORY="+dir, "PUBLISHER_BASE="+base)
		require.NoError(t, cmd.Start())
		time.Sleep(time.Duration(random.IntN(100)) * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	_, err := update(t.Context(), newPublisher(dir, base), base, many())
	require.NoError(t, err)
	titles, verdict := read(t, p)
	require.Len(t, titles, 120)
	require.Equal(t, feedhistory.VerdictWhole, verdict)
}
