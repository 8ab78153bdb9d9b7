package s3_test

import (
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/publish/s3"
)

// TestLeaseRunsOut checks that the lock of a writer that does not come back is
// free after its lease, and not before.
func TestLeaseRunsOut(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	crashed, err := s.output(t).Lock(t.Context())
	require.NoError(t, err)
	other := s.output(t)
	_, err = other.Lock(t.Context())
	require.ErrorIs(t, err, publish.ErrLocked)
	require.ErrorContains(t, err, "the lock is free in 1m")
	s.advance()
	unlock, err := other.Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, crashed()) // late, and in vain
	require.NoError(t, other.Put(t.Context(), "x", nil))
	require.NoError(t, unlock())
}

// TestLeaseIsRenewed checks that a working writer keeps its lock.
func TestLeaseIsRenewed(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	out := s.output(t)
	out.Lease = 15 * time.Second // a busy machine delays a renewal by seconds
	leases := feedtest.Count(3)
	renewals, renewed := 0, make(chan bool)
	unlock, err := out.Lock(t.Context())
	require.NoError(t, err)
	s.setFault(func(r *http.Request) fault {
		if r.Method == http.MethodPut && nameOf(r) == ".lock" {
			if renewals++; renewals <= leases {
				s.ahead += out.Lease
			} else if renewals == leases+1 {
				close(renewed) // the one before has been stored
			}
		}
		return none
	})
	<-renewed
	_, err = s.output(t).Lock(t.Context())
	require.ErrorIs(t, err, publish.ErrLocked)
	require.NoError(t, out.Put(t.Context(), "x", nil))
	require.NoError(t, unlock())
}

// TestFenced checks that everything fails that a writer does after it has lost
// the lock, and that nothing changes for readers.
func TestFenced(t *testing.T) {
	t.Parallel()
	const archive = `<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><id>x</id><fh:archive/></feed>`
	for name, late := range map[string]func(out *s3.Output) error{
		"replace":            func(out *s3.Output) error { return out.Put(t.Context(), "feed.atom", []byte("late")) },
		"replace, unread":    func(out *s3.Output) error { return out.Put(t.Context(), "other.atom", []byte("late")) },
		"first":              func(out *s3.Output) error { return out.Put(t.Context(), "new.atom", []byte("late")) },
		"replace an archive": func(out *s3.Output) error { return out.Put(t.Context(), "1.atom", []byte(archive)) },
		"note":               func(out *s3.Output) error { return out.Put(t.Context(), ".feed.atom.next", []byte("late")) },
		"remove":             func(out *s3.Output) error { return out.Remove(t.Context(), "feed.atom") },
		"remove nothing":     func(out *s3.Output) error { return out.Remove(t.Context(), "nothing") },
		"remove a note":      func(out *s3.Output) error { return out.Remove(t.Context(), ".note") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStore(t)
			out, other := s.output(t), s.output(t)
			unlock, err := out.Lock(t.Context())
			require.NoError(t, err)
			texts := map[string]string{"feed.atom": "one", "other.atom": "one", "1.atom": "one", ".note": "one"}
			for name, text := range texts {
				require.NoError(t, out.Put(t.Context(), name, []byte(text)))
			}
			s.advance()
			unlockOther, err := other.Lock(t.Context())
			require.NoError(t, err)

			for range 2 {
				err = late(out)
				require.ErrorIs(t, err, s3.ErrLost)
				require.ErrorIs(t, err, publish.ErrLocked)
			}
			require.NoError(t, unlock())
			require.NoError(t, other.Put(t.Context(), "feed.atom", []byte("two")))
			texts["feed.atom"] = "two"
			require.NoError(t, unlockOther())
			for name, text := range texts {
				data, err := fs.ReadFile(s.output(t), name)
				require.NoError(t, err)
				require.Equal(t, text, string(data))
			}
			for _, name := range []string{"new.atom", ".feed.atom.next", "nothing"} {
				_, err := fs.ReadFile(other, name)
				require.ErrorIs(t, err, fs.ErrNotExist)
			}
		})
	}
}

// TestFencedAfterTheLease checks that a writer notices by its own clocks that
// its lease has expired, and then puts no new archive either.
func TestFencedAfterTheLease(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	out := s.output(t)
	out.Lease = time.Second
	unlock, err := out.Lock(t.Context())
	require.NoError(t, err)
	s.setFault(func(r *http.Request) fault {
		if r.Method == http.MethodPut && nameOf(r) == ".lock" {
			return cut // no renewal gets through
		}
		return none
	})
	time.Sleep(1100 * time.Millisecond)
	s.setFault(nil)
	s.requests()
	require.ErrorIs(t, out.Put(t.Context(), "1.atom", []byte(`<feed xmlns="http://www.w3.org/2005/Atom" xmlns:fh="http://purl.org/syndication/history/1.0"><id>x</id><fh:archive/></feed>`)), s3.ErrLost)
	require.ErrorIs(t, out.Remove(t.Context(), "1.atom"), s3.ErrLost)
	require.NotContains(t, s.requests(), "PUT 1.atom")
	require.NoError(t, unlock())
}

// TestLeaseEndsMeanwhile checks that the error says the lock is lost if the lease expires
// while the store does not answer.
func TestLeaseEndsMeanwhile(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	out := s.output(t)
	out.Lease = time.Second
	unlock, err := out.Lock(t.Context())
	require.NoError(t, err)
	s.setFault(func(r *http.Request) fault {
		if r.Method == http.MethodPut {
			return hangs
		}
		return none
	})
	require.ErrorIs(t, out.Put(t.Context(), ".note", nil), s3.ErrLost)
	require.NoError(t, unlock())
}

// TestNextHolderFinishes kills a writer between recording a change of a
// document and putting it. The next holder puts it, and the late request
// changes nothing.
func TestNextHolderFinishes(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	out, other := s.output(t), s.output(t)
	abandoned, err := out.Lock(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, abandoned()) }()
	require.NoError(t, out.Put(t.Context(), "feed.atom", []byte("one")))
	dead := func(r *http.Request) fault {
		if r.Method == http.MethodPut && nameOf(r) != ".lock" {
			return cut
		}
		return none
	}
	s.setFault(dead)
	require.Error(t, out.Put(t.Context(), "feed.atom", []byte("two")))
	require.Error(t, out.Put(t.Context(), "new.atom", []byte("new")))
	data, err := fs.ReadFile(other, "feed.atom")
	require.NoError(t, err)
	require.Equal(t, "one", string(data))

	s.setFault(nil)
	s.advance()
	unlock, err := other.Lock(t.Context())
	require.NoError(t, err)
	for name, text := range map[string]string{"feed.atom": "two", "new.atom": "new"} {
		data, err = fs.ReadFile(other, name)
		require.NoError(t, err)
		require.Equal(t, text, string(data), "what was decided")
	}
	require.NoError(t, other.Put(t.Context(), "feed.atom", []byte("three")))
	require.NoError(t, other.Remove(t.Context(), "new.atom"))
	require.NoError(t, unlock())
	for range 2 { // it is not done again
		unlock, err := s.output(t).Lock(t.Context())
		require.NoError(t, err)
		require.NoError(t, unlock())
	}
	data, err = fs.ReadFile(other, "feed.atom")
	require.NoError(t, err)
	require.Equal(t, "three", string(data))
	_, err = fs.Stat(other, "new.atom")
	require.ErrorIs(t, err, fs.ErrNotExist)
}

// TestChanged checks that a document stays if somebody has put it who ignores
// the lock.
func TestChanged(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	out := s.output(t)
	unlock, err := out.Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, out.Put(t.Context(), "feed.atom", []byte("one")))
	s.upload(t, "feed.atom", "by hand")
	_, err = out.ReadFile("feed.atom") // by somebody who serves it
	require.NoError(t, err)
	_, err = fs.Stat(out, "feed.atom")
	require.NoError(t, err)
	require.ErrorIs(t, out.Put(t.Context(), "feed.atom", []byte("two")), s3.ErrChanged)
	data, err := out.ReadFile("feed.atom")
	require.NoError(t, err)
	require.Equal(t, "by hand", string(data))
	require.NoError(t, unlock())

	unlock, err = out.Lock(t.Context())
	require.NoError(t, err)
	require.NoError(t, out.Put(t.Context(), "feed.atom", []byte("three")), "it has been seen now")
	require.NoError(t, unlock())
	s.upload(t, ".lock", "nonsense")
	_, err = s.output(t).Lock(t.Context())
	require.ErrorContains(t, err, "not a lock that feedhistory wrote")
}

func (s *store) upload(t testing.TB, name, text string) {
	_, err := minio.Core{Client: s.client(t, "key", "secret")}.PutObject(t.Context(), bucket, prefix+"/"+name,
		strings.NewReader(text), int64(len(text)), "", "", minio.PutObjectOptions{})
	require.NoError(t, err)
}
