package s3_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/publish/s3"
)

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

	mu     sync.Mutex
	ahead  time.Duration
	fault  func(r *http.Request) fault // nil: no fault
	log    []*http.Request
	handle http.Handler
	naive  http.Handler // the same objects without checking signatures
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
