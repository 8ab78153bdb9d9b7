package s3_test

import (
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/publish/outputtest"
	"github.com/feedhistory/feedhistory/publish/s3"
)

func TestOutput(t *testing.T) {
	t.Parallel()
	outputtest.Run(t, func(t testing.TB) (out, other publish.Output) {
		s := newStore(t)
		return s.output(t), s.output(t)
	})
}

var noon = time.Date(2003, 12, 13, 12, 0, 0, 0, time.UTC)

// entries returns n entries, numbered from from, an hour apart.
func entries(t testing.TB, from, n int) (all []*feedhistory.Entry) {
	for i := from; i < from+n; i++ {
		e, err := feedhistory.Draft{
			ID: fmt.Sprint("e", i), Updated: noon.Add(time.Duration(i) * time.Hour), Title: feedhistory.Text{Body: fmt.Sprint("text ", i)},
		}.Entry()
		require.NoError(t, err)
		all = append(all, e)
	}
	return all
}

func newPublisher(out publish.Output) *publish.Publisher {
	return &publish.Publisher{Output: out, Base: base, Recent: -1, Split: feedhistory.Split{Size: 3}}
}

// requireEntries requires that readers find the entries from 1 to n.
func requireEntries(t testing.TB, out fs.FS, n int) {
	t.Helper()
	found := outputtest.Fetch(t, out, base, "feed.atom")
	require.Len(t, found, n)
	for _, e := range entries(t, 1, n) {
		require.Equal(t, e.Title().Body, found[e.ID])
	}
}

// TestRoot keeps the documents at the root of the bucket.
func TestRoot(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	out := &s3.Output{Client: s.client(t, "key", "secret"), Bucket: bucket}
	require.NoError(t, newPublisher(out).Append(t.Context(), entries(t, 1, 10)...))
	out = &s3.Output{Client: out.Client, Bucket: bucket, Prefix: "/"}
	requireEntries(t, out, 10)
	list, err := fs.ReadDir(out, ".")
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, "feed feed.atom", list[0].Name()+" "+list[1].Name())
	_, err = out.Client.StatObject(t.Context(), bucket, "feed.atom", minio.StatObjectOptions{})
	require.NoError(t, err)
}

// TestHeaders checks that each object has the headers that it must be served
// with.
func TestHeaders(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	out := s.output(t)
	out.MaxAge = time.Minute
	p := newPublisher(out)
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 10)...))
	head := func(key string) (kind, cache string) {
		info, err := out.Client.StatObject(t.Context(), bucket, key, minio.StatObjectOptions{})
		require.NoError(t, err)
		require.Empty(t, info.Metadata.Get("Content-Encoding"))
		return info.ContentType, info.Metadata.Get("Cache-Control")
	}
	archives := func() []string {
		names, err := fs.Glob(out, "feed/*.atom")
		require.NoError(t, err)
		slices.Sort(names)
		return names
	}
	requireHeads := func() {
		all := archives()
		for i, name := range append(all, "feed.atom") {
			want := "public, max-age=31536000, immutable"
			if i >= len(all)-1 { // the newest may still gain its successor's link
				want = "public, max-age=60"
			}
			kind, cache := head(prefix + "/" + name)
			require.Equal(t, "application/atom+xml "+want, kind+" "+cache, name)
		}
		kind, cache := head(prefix + "/.lock")
		require.Equal(t, "application/octet-stream no-store", kind+" "+cache)
	}
	require.Len(t, archives(), 3)
	requireHeads()
	require.NoError(t, p.Append(t.Context(), entries(t, 11, 4)...))
	require.Len(t, archives(), 4)
	requireHeads()

	rss := newPublisher(out)
	rss.Format = feedhistory.RSS
	require.NoError(t, rss.Append(t.Context(), entries(t, 1, 2)...))
	kind, _ := head(prefix + "/feed.rss")
	require.Equal(t, "application/rss+xml", kind)
}

// TestSameAsDirectory checks that a bucket has the same bytes under the same
// names as a directory.
func TestSameAsDirectory(t *testing.T) {
	t.Parallel()
	out, dir := newStore(t).output(t), publish.Dir{Path: t.TempDir()}
	for _, o := range []publish.Output{out, dir} {
		p := newPublisher(o)
		require.NoError(t, p.Append(t.Context(), entries(t, 1, 11)...))
		require.NoError(t, p.Append(t.Context(), entries(t, 12, 9)...))
		require.NoError(t, p.Erase(t.Context(), "e5"))
	}
	documents := func(from fs.FS) map[string]string {
		found := map[string]string{}
		require.NoError(t, fs.WalkDir(from, ".", func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || entry.Name() == ".lock" {
				return err
			}
			data, err := fs.ReadFile(from, name)
			found[name] = string(data)
			return err
		}))
		return found
	}
	require.Equal(t, documents(dir), documents(out))
}

// TestConditions checks that every write has a condition, and that writes are
// in the right order.
func TestConditions(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	out := s.output(t)
	p := newPublisher(out)
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 4)...))
	s.requests()
	var puts []string
	s.setFault(func(r *http.Request) fault {
		if r.Method == http.MethodPut {
			condition := r.Header.Get("If-None-Match")
			if condition == "" {
				condition = "If-Match"
				require.Len(t, strings.Trim(r.Header.Get("If-Match"), `"`), 32)
			}
			if name := nameOf(r); name != ".lock" {
				name, _, _ = strings.Cut(name, "-")
				puts = append(puts, name+" "+condition)
			}
		}
		return none
	})
	require.NoError(t, p.Append(t.Context(), entries(t, 5, 6)...))
	s.setFault(nil)
	require.Equal(t, []string{"feed/2 *", "feed/3 *", "feed/1 If-Match", "feed.atom If-Match"}, puts)
	requireEntries(t, s.output(t), 10)
}

// TestRequests checks the requests of a call and the order of its writes.
func TestRequests(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	p := newPublisher(s.output(t))
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 4)...))
	made := func(from, n int) (all []string) {
		require.NoError(t, p.Append(t.Context(), entries(t, from, n)...))
		for _, request := range s.requests() {
			request, _, _ = strings.Cut(request, "-") // an archive's name without its digest
			all = append(all, request)
		}
		return all
	}
	s.requests()
	require.Equal(t, []string{"GET .lock", "PUT .lock", "GET feed.atom", "PUT .lock"}, made(4, 1), "nothing is new")
	require.Equal(t, []string{
		"GET .lock", "PUT .lock", "GET feed.atom",
		"PUT .lock", "PUT feed.atom", // recorded, then done
		"PUT .lock",
	}, made(5, 1))
	require.Equal(t, []string{
		"GET .lock", "PUT .lock", "GET feed.atom",
		"HEAD feed/2", "GET ", // there is no such document, and no such directory
		"PUT .lock", "PUT feed/2", // the list of archives that might be left over
		"PUT .lock",                             // the note, with which the call takes effect
		"GET feed/1", "PUT .lock", "PUT feed/1", // next-archive
		"PUT .lock", "PUT feed.atom",
		"PUT .lock", "PUT .lock", // the note and the list are removed
		"PUT .lock",
	}, made(6, 2))
}
