package s3_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/publish/outputtest"
	"github.com/feedhistory/feedhistory/publish/s3"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/require"
)

var stride = flag.Int("stride", feedtest.Stride(19), "of how many requests one is hit in the tests of faults")

// A step is one call of a short history that covers everything that writes.
type step struct {
	call  func(*publish.Publisher) error
	after int // the number of entries after the call
}

func history(t testing.TB) []step {
	add := func(from, n, after int) step {
		return step{func(p *publish.Publisher) error { return p.Append(t.Context(), entries(t, from, n)...) }, after}
	}
	erase := step{func(p *publish.Publisher) error { return p.Erase(t.Context(), "e5") }, 9}
	return []step{add(1, 2, 2), add(3, 2, 4), add(5, 6, 10), erase, add(11, 3, 12)}
}

// TestTransient makes a request fail once. The client repeats it, and nobody
// notices; even if the first request took effect, so that the condition of the
// second is not met.
func TestTransient(t *testing.T) {
	t.Parallel()
	every := *stride
	for i, how := range []fault{fails500, fails503, cut, landsCut, lands500, halfAnswer} {
		for n, hit := 1+i*every/6, true; hit; n += every {
			t.Run(fmt.Sprintf("%d/%d", how, n), func(t *testing.T) {
				s := newStore(t)
				left := n
				hit = false
				s.setFault(func(r *http.Request) fault {
					if left--; left == 0 {
						hit = true
						if how == halfAnswer && r.Method != http.MethodGet {
							return cut
						}
						return how
					}
					return none
				})
				p := newPublisher(s.output(t))
				for _, step := range history(t) {
					require.NoError(t, step.call(p))
					require.Len(t, outputtest.Fetch(t, s.output(t), base, "feed.atom"), step.after)
				}
				s.setFault(nil)
			})
		}
	}
}

// TestOutage makes all requests fail from some request on. The next publisher,
// on another machine, continues: the failed call took effect either whole or
// not at all, no link dangles, and nothing that was acknowledged is missing.
func TestOutage(t *testing.T) {
	feedtest.Long(t)
	t.Parallel()
	every := *stride
	for i, how := range []fault{fails503, cut, landsCut, lands500} {
		for n, hit := 1+i*every/4, true; hit; n += every {
			t.Run(fmt.Sprintf("%d/%d", how, n), func(t *testing.T) { hit = outage(t, how, n) })
		}
	}
}

func outage(t *testing.T, how fault, n int) (hit bool) {
	s := newStore(t)
	output := func() *s3.Output {
		return &s3.Output{Bucket: bucket, Prefix: prefix, Client: newClient(t, s.URL, &minio.Options{
			Creds: credentials.NewStaticV4("key", "secret", ""), MaxRetries: 1,
		})}
	}
	left := n
	dying := func(*http.Request) fault {
		switch left--; {
		case left > 0:
			return none
		case left == 0: // the only request that may take effect
			hit = true
			return how
		}
		return cut
	}
	p, before := newPublisher(output()), 0
	for _, step := range history(t) {
		if !hit {
			s.setFault(dying)
		}
		err := step.call(p)
		s.setFault(nil)
		if hit { // the lock may remain, without an error
			s.advance()
		}
		if err != nil {
			requireEither(t, s, before, step.after)
			p = newPublisher(output())
			require.NoError(t, p.Append(t.Context()))
			requireEither(t, s, before, step.after)
			if err := step.call(p); !errors.Is(err, publish.ErrNotPublished) { // erased already
				require.NoError(t, err)
			}
		}
		require.Len(t, outputtest.Fetch(t, s.output(t), base, "feed.atom"), step.after)
		before = step.after
	}
	return hit
}

// requireEither requires that readers find as many entries as before a call, or
// as many as after it.
func requireEither(t *testing.T, s *store, before, after int) {
	t.Helper()
	out := s.output(t)
	if _, err := fs.Stat(out, "feed.atom"); before == 0 && errors.Is(err, fs.ErrNotExist) {
		return
	}
	require.Contains(t, []int{before, after}, len(outputtest.Fetch(t, out, base, "feed.atom")))
}

// TestTimeout lets a request take effect, but sends no answer in time.
func TestTimeout(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	transport, err := minio.DefaultTransport(false)
	require.NoError(t, err)
	transport.ResponseHeaderTimeout = time.Second
	t.Cleanup(transport.CloseIdleConnections)
	out := &s3.Output{Bucket: bucket, Prefix: prefix, Client: newClient(t, s.URL, &minio.Options{
		Creds: credentials.NewStaticV4("key", "secret", ""), MaxRetries: 5, Transport: transport,
	})}
	p := newPublisher(out)
	require.NoError(t, p.Append(t.Context(), entries(t, 1, 3)...))
	hit := map[string]bool{}
	s.setFault(func(r *http.Request) fault {
		if r.Method != http.MethodPut || hit[nameOf(r)] {
			return none
		}
		hit[nameOf(r)] = true
		return landsHangs
	})
	require.NoError(t, p.Append(t.Context(), entries(t, 4, 3)...))
	s.setFault(nil)
	require.Greater(t, len(hit), 2)
	requireEntries(t, s.output(t), 6)
}

// TestRefused checks that a call which cannot work returns a specific error,
// without the credentials, and writes nothing that readers see.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit func(t *testing.T, s *store, out *s3.Output)
		want error
	}{
		"wrong secret": {func(t *testing.T, s *store, out *s3.Output) { out.Client = s.client(t, "key", "hush") }, s3.ErrCredentials},
		"unknown key":  {func(t *testing.T, s *store, out *s3.Output) { out.Client = s.client(t, "hush", "hush") }, s3.ErrCredentials},
		"no bucket":    {func(_ *testing.T, _ *store, out *s3.Output) { out.Bucket = "nowhere" }, s3.ErrBucket},
		"no conditions": {func(_ *testing.T, s *store, _ *s3.Output) {
			s.setFault(func(*http.Request) fault { return heedless })
		}, s3.ErrConditions},
		"no If-Match": {func(_ *testing.T, s *store, _ *s3.Output) {
			s.setFault(func(r *http.Request) fault {
				if r.Header.Get("If-Match") != "" {
					return heedless
				}
				return none
			})
		}, s3.ErrConditions},
		"conditions refused": {func(_ *testing.T, s *store, _ *s3.Output) {
			s.setFault(func(r *http.Request) fault {
				if r.Header.Get("If-Match")+r.Header.Get("If-None-Match") != "" {
					return unknown501
				}
				return none
			})
		}, s3.ErrConditions},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			out := s.output(t)
			test.edit(t, s, out)
			for range 2 {
				err := newPublisher(out).Append(t.Context(), entries(t, 1, 9)...)
				require.ErrorIs(t, err, test.want)
				require.NotContains(t, err.Error(), "hush")
				failure := feedtest.ErrorAs[*s3.Error](t, err)
				require.Equal(t, out.Bucket, failure.Bucket)
			}
			if test.want != s3.ErrConditions {
				for _, name := range []string{"feed.atom", ".note"} {
					_, err := fs.ReadFile(out, name)
					require.ErrorIs(t, err, test.want)
					_, err = fs.Stat(out, name)
					require.ErrorIs(t, err, test.want, "it is not mistaken for an empty feed")
					_, err = out.Open(name)
					require.ErrorIs(t, err, test.want)
				}
				_, err := fs.ReadDir(out, ".")
				require.ErrorIs(t, err, test.want)
			}
			s.setFault(nil)
			list, err := fs.ReadDir(s.output(t), ".")
			require.NoError(t, err)
			require.Empty(t, list)
		})
	}
}

// TestLaterRefused checks that credentials which expire are not mistaken for a
// missing document.
func TestLaterRefused(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	out := s.output(t)
	require.NoError(t, newPublisher(out).Append(t.Context(), entries(t, 1, 9)...))
	out.Client = s.client(t, "key", "expired")
	_, err := fs.Stat(out, "feed.atom")
	require.ErrorIs(t, err, s3.ErrCredentials)
	require.NotErrorIs(t, err, fs.ErrNotExist)
}

func TestNotLocked(t *testing.T) {
	t.Parallel()
	out := newStore(t).output(t)
	require.ErrorIs(t, out.Put(t.Context(), "x", nil), s3.ErrNotLocked)
	require.ErrorIs(t, out.Remove(t.Context(), "x"), s3.ErrNotLocked)
	unlock, err := out.Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, unlock())
	require.ErrorIs(t, out.Put(t.Context(), "x", nil), s3.ErrNotLocked)
	for _, bad := range []*s3.Output{{}, {Client: out.Client}, {Client: out.Client, Bucket: bucket, Prefix: "../x"}, {Client: out.Client, Bucket: bucket, Lease: 1}} {
		_, err := bad.Lock(t.Context())
		require.ErrorContains(t, err, "s3: ")
	}
}

// clearEnvironment unsets all variables that FromEnvironment reads.
func clearEnvironment(t *testing.T) {
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
		"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
}

func TestFromEnvironment(t *testing.T) {
	clearEnvironment(t)
	_, err := s3.FromEnvironment("s3://bucket", "")
	require.ErrorIs(t, err, s3.ErrCredentials)
	t.Setenv("AWS_ACCESS_KEY_ID", "an-id")
	_, err = s3.FromEnvironment("s3://bucket", "")
	require.ErrorIs(t, err, s3.ErrCredentials)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hush")

	for _, test := range []struct {
		target, endpoint   string
		env                map[string]string
		bucket, prefix, at string
	}{
		{"s3://bucket", "", nil, "bucket", "", "https://s3.amazonaws.com"},
		{"s3://bucket/", "", nil, "bucket", "", "https://s3.amazonaws.com"},
		{"s3://my.bucket/a/b/", "", nil, "my.bucket", "a/b", "https://s3.amazonaws.com"},
		{"s3://bucket/a", "http://127.0.0.1:9000", nil, "bucket", "a", "http://127.0.0.1:9000"},
		{"s3://bucket/a", "https://store.example.org/", nil, "bucket", "a", "https://store.example.org"},
		{"s3://bucket/a", "", map[string]string{"AWS_ENDPOINT_URL": "https://one.example.org"}, "bucket", "a", "https://one.example.org"},
		{"s3://bucket/a", "", map[string]string{
			"AWS_ENDPOINT_URL": "https://one.example.org", "AWS_ENDPOINT_URL_S3": "https://two.example.org",
		}, "bucket", "a", "https://two.example.org"},
		{"s3://bucket/a", "https://three.example.org", map[string]string{"AWS_ENDPOINT_URL_S3": "https://two.example.org"}, "bucket", "a", "https://three.example.org"},
	} {
		t.Run(test.target+" "+test.endpoint, func(t *testing.T) {
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			out, err := s3.FromEnvironment(test.target, test.endpoint)
			require.NoError(t, err)
			require.Equal(t, test.bucket, out.Bucket)
			require.Equal(t, test.prefix, out.Prefix)
			require.Equal(t, test.at, out.Client.EndpointURL().String())
		})
	}
	for _, target := range []string{"", "bucket", "s3:", "s3://", "s3:///x", "https://bucket/x", "s3://an-id:hush@bucket/x", "s3://bucket/x?y", "s3://bucket/x#y", "s3://bucket/../x", "s3://bucket/a//b"} {
		_, err := s3.FromEnvironment(target, "")
		require.Error(t, err, target)
		require.NotContains(t, err.Error(), "hush")
	}
	for _, endpoint := range []string{"store.example.org", "ftp://store.example.org", "https://", "https://an-id:hush@store.example.org", "https://store.example.org/path", "https://a b:hush"} {
		_, err := s3.FromEnvironment("s3://bucket", endpoint)
		require.Error(t, err, endpoint)
		require.NotContains(t, err.Error(), "hush")
	}
}

// TestFromFile checks that the credentials of a profile are used, and that the
// store accepts them.
func TestFromFile(t *testing.T) {
	clearEnvironment(t)
	file := filepath.Join(t.TempDir(), "credentials")
	require.NoError(t, os.WriteFile(file, []byte("[blog]\naws_access_key_id = key\naws_secret_access_key = secret\n"), 0o600))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	_, err := s3.FromEnvironment("s3://"+bucket, "")
	require.ErrorIs(t, err, s3.ErrCredentials, "there is no profile called default")
	t.Setenv("AWS_PROFILE", "blog")
	out, err := s3.FromEnvironment("s3://"+bucket+"/"+prefix, newStore(t).URL)
	require.NoError(t, err)
	require.NoError(t, newPublisher(out).Append(t.Context(), entries(t, 1, 4)...))
	requireEntries(t, out, 4)
}
