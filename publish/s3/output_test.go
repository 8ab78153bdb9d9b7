package s3_test

import (
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/publish/outputtest"
	"github.com/feedhistory/feedhistory/publish/s3"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
	"github.com/stretchr/testify/require"
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
		e, err := compose.Draft{
			ID: fmt.Sprint("e", i), Updated: noon.Add(time.Duration(i) * time.Hour), Title: feedhistory.Text{Body: fmt.Sprint("text ", i)},
		}.Entry()
		require.NoError(t, err)
		all = append(all, e)
	}
	return all
}

func newPublisher(out publish.Output) *publish.Publisher {
	return &publish.Publisher{Output: out, Base: base, Recent: -1, Split: compose.Split{Size: 3}}
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
	rss.Format = feedhistory.FormatRSS
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

const (
	bucket = "feeds"
	prefix = "blog"
	base   = "https://example.org/blog/"
)

// A store is an object store over real HTTP, with faults, and with a clock that
// tests can put forward. Writes take turns, because the fake store checks the
// condition and writes in two steps.
type store struct {
	*httptest.Server
	writes sync.Mutex

	mu      sync.Mutex
	ahead   time.Duration
	fault   func(r *http.Request) fault // nil: no fault
	hanging func()                      // called when a request hangs; nil: nothing is
	log     []*http.Request
	handle  http.Handler
	naive   http.Handler // the same objects without checking signatures
}

// A fault is something that happens to a request.
type fault uint8

const (
	none       fault = iota
	fails500         // before it takes effect
	fails503         //
	cut              // the connection ends before the request takes effect
	landsCut         // it takes effect, and the connection ends without an answer
	lands500         // it takes effect, and the answer is an error
	heedless         // conditions are ignored
	unknown501       // conditions are refused
	halfAnswer       // the answer ends in the middle
	landsHangs       // it takes effect, and no answer comes
	hangs            // no answer comes, and it does not take effect
)

func newStore(t testing.TB) *store {
	s := &store{}
	objects, now, skew := s3mem.New(s3mem.WithTimeSource(s)), gofakes3.WithTimeSource(s), gofakes3.WithTimeSkewLimit(0)
	s.handle = gofakes3.New(objects, now, skew, gofakes3.WithV4Auth(map[string]string{"key": "secret"})).Server()
	s.naive = gofakes3.New(objects, now, skew).Server()
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	require.NoError(t, s.client(t, "key", "secret").MakeBucket(t.Context(), bucket, minio.MakeBucketOptions{}))
	return s
}

// Now implements gofakes3.TimeSource.
func (s *store) Now() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().UTC().Add(s.ahead)
}

// Since implements gofakes3.TimeSource.
func (s *store) Since(t time.Time) time.Duration { return s.Now().Sub(t) }

// advance lets all leases expire.
func (s *store) advance() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ahead += 2 * time.Minute
}

// setFault sets the faults of requests from now on.
func (s *store) setFault(f func(r *http.Request) fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// requests returns the requests since the last call: "PUT feed.atom".
func (s *store) requests() (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.log {
		all = append(all, r.Method+" "+nameOf(r))
	}
	s.log = nil
	return all
}

func nameOf(r *http.Request) string {
	return strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/"+bucket+"/"), prefix+"/")
}

// ServeHTTP answers as the store does, or according to the fault.
func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.log = append(s.log, r)
	how := none
	if s.fault != nil {
		how = s.fault(r)
	}
	s.mu.Unlock()
	w.Header().Set("Date", s.Now().Format(http.TimeFormat))
	writes := r.Method == http.MethodPut || r.Method == http.MethodDelete
	if writes {
		s.writes.Lock()
		defer s.writes.Unlock()
	}
	if how == hangs || how == landsHangs {
		if how == landsHangs {
			s.handle.ServeHTTP(httptest.NewRecorder(), r)
		}
		if s.hanging != nil {
			s.hanging()
		}
		if writes {
			s.writes.Unlock()
			defer s.writes.Lock()
		}
		_, _ = io.Copy(io.Discard, r.Body) // only then does the server notice a closed connection
		<-r.Context().Done()
		return
	}
	switch how {
	case none:
		s.handle.ServeHTTP(w, r)
	case heedless:
		r.Header.Del("If-Match")
		r.Header.Del("If-None-Match")
		s.naive.ServeHTTP(w, r)
	case unknown501:
		refuse(w, http.StatusNotImplemented, "NotImplemented")
	case fails500:
		refuse(w, http.StatusInternalServerError, "InternalError")
	case fails503:
		refuse(w, http.StatusServiceUnavailable, "SlowDown")
	case lands500:
		s.handle.ServeHTTP(httptest.NewRecorder(), r)
		refuse(w, http.StatusInternalServerError, "InternalError")
	case landsCut:
		s.handle.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case cut:
		panic(http.ErrAbortHandler)
	case halfAnswer:
		answer := httptest.NewRecorder()
		s.handle.ServeHTTP(answer, r)
		maps.Copy(w.Header(), answer.Header())
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
		panic(http.ErrAbortHandler)
	}
}

func refuse(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(`<?xml version="1.0"?><Error><Code>` + code + `</Code><Message>no</Message></Error>`))
}

func (s *store) client(t testing.TB, key, secret string) *minio.Client {
	return newClient(t, s.URL, &minio.Options{Creds: credentials.NewStaticV4(key, secret, ""), MaxRetries: 3})
}

func newClient(t testing.TB, url string, opts *minio.Options) *minio.Client {
	opts.Region = "us-east-1"
	client, err := minio.New(strings.TrimPrefix(url, "http://"), opts)
	require.NoError(t, err)
	return client
}

// output returns a new Output, as another process would have it.
func (s *store) output(t testing.TB) *s3.Output {
	return &s3.Output{Client: s.client(t, "key", "secret"), Bucket: bucket, Prefix: prefix}
}
