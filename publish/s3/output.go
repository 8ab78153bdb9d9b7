// Package s3 keeps the documents of package publish in an object store: Amazon
// S3, Cloudflare R2, MinIO and others with conditional writes.
//
//	out, err := s3.FromEnvironment("s3://bucket/blog", "")
//	…
//	p := &publish.Publisher{Output: out, Base: "https://feeds.example.org/blog/"}
//	err = p.Append(ctx, entries...)
//
// # The bucket
//
// The documents have the same names, below the prefix, and the same bytes as in a
// directory. Each has its Content-Type and the Cache-Control of publish.Handler: an
// archive with its successor's link is immutable. Everything not for readers is in the
// object ".lock".
//
// # Two publishers, and a killed one
//
// The lock is a lease: the object ".lock", which is replaced with If-Match. Its
// holder renews it while it works. If a holder was killed, its lock becomes
// free when it has not been renewed for Lease, by the store's clock alone.
//
// A change of a document is recorded first: the new bytes go into the lock's object,
// under the condition that nobody else has taken the lock. Then the document is put,
// under the condition that it has not changed. So a writer that was suspended and comes
// back late fails with ErrLost, and the next holder finishes the recorded work of a
// killed writer. New archives are put with If-None-Match. Not every store has a
// conditional DELETE, so its URL is signed for no longer than the lease: the store
// refuses a later request.
//
// At the first Lock, two requests test whether the store honours conditions. If
// it does not, Lock returns ErrConditions.
//
// Methods of nil pointers may panic, unless their comments say otherwise.
package s3

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing/fstest"
	"time"

	"github.com/minio/minio-go/v7"
)

// An Output keeps documents in a bucket. It is a publish.Output, with one
// holder of the lock at a time. Client and Bucket are required.
type Output struct {
	Client *minio.Client
	Bucket string

	// Prefix is the beginning of all keys, without slashes around it; "" means the root of
	// the bucket. The URL at which it is served is the Base of a Publisher.
	Prefix string

	// MaxAge is how long caches may keep documents subject to change: the subscription
	// document and the newest archive. Zero means 5 minutes.
	MaxAge time.Duration

	// Lease is how long the lock of a crashed writer stays locked. The holder
	// keeps renewing it. Zero means a minute.
	Lease time.Duration

	// Timeout is the maximum time for one call of a method, with all requests
	// and their repetitions. Zero means 2 minutes.
	Timeout time.Duration

	// HTTP sends the requests to delete objects, which Client cannot sign for a limited
	// time. Nil means http.DefaultClient.
	HTTP *http.Client

	// Logger gets each request and answer at level Debug. It has an effect only on an
	// Output of FromEnvironment. Nil means no log.
	Logger *slog.Logger

	mu       sync.Mutex
	held     *lease      // nil if this Output does not hold the lock
	probed   bool        // the store is known to honour conditions
	verified atomic.Bool // a document was read back as it was put
}

// check returns an error for impossible settings.
func (o *Output) check() error {
	switch {
	case o.Client == nil || o.Bucket == "":
		return errors.New("s3: Output.Client and Output.Bucket must be set")
	case strings.Trim(o.Prefix, "/") != "" && !fs.ValidPath(strings.Trim(o.Prefix, "/")):
		return fmt.Errorf("s3: not a path: %q", o.Prefix)
	case o.MaxAge < 0:
		return errors.New("s3: Output.MaxAge is negative")
	case o.Timeout < 0:
		return errors.New("s3: Output.Timeout is negative")
	case o.Lease < 0:
		return errors.New("s3: Output.Lease is negative")
	case o.Lease > 0 && o.Lease < time.Second:
		return fmt.Errorf("s3: the lease is shorter than a second: %v", o.Lease)
	}
	return nil
}

func (o *Output) context(parent context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(parent, cmp.Or(o.Timeout, 2*time.Minute))
}

// during returns a context for a request of the lock's holder. It ends with the given
// one, when the lock is lost, and after the Timeout.
func (o *Output) during(ctx context.Context, l *lease) (context.Context, context.CancelFunc) {
	ctx, cancel := o.context(ctx)
	ctx, lose := context.WithCancelCause(ctx)
	stop := context.AfterFunc(l.ctx, func() { lose(context.Cause(l.ctx)) })
	return ctx, func() {
		stop()
		lose(nil)
		cancel()
	}
}

// reading returns a context for a method of fs.FS, which has none. The holder of the lock
// reads on behalf of whoever asked for the lock.
func (o *Output) reading() (context.Context, context.CancelFunc) {
	if l := o.holder(); l != nil {
		return o.context(l.caller)
	}
	return o.context(context.Background())
}

// holder returns the lease of this Output, or nil.
func (o *Output) holder() *lease {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.held
}

// ReadFile implements fs.ReadFileFS.
func (o *Output) ReadFile(name string) ([]byte, error) {
	there, err := o.find("open", name)
	if err != nil {
		return nil, err
	}
	return there.data, nil
}

// find reads a document.
func (o *Output) find(op, name string) (*object, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	if name == "." {
		return nil, &fs.PathError{Op: op, Path: name, Err: errDirectory}
	}
	ctx, cancel := o.reading()
	defer cancel()
	if isHidden(name) {
		return o.note(ctx, op, name)
	}
	l, etag := o.holder(), ""
	there, err := o.get(ctx, o.key(name))
	switch {
	case err == nil:
		etag = there.etag
	case errors.Is(err, fs.ErrNotExist):
		err = &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	default:
		return nil, err
	}
	if l != nil {
		l.see(name, etag)
	}
	return there, err
}

// note reads a document whose name is hidden.
func (o *Output) note(ctx context.Context, op, name string) (*object, error) {
	notes, at, err := o.notes(ctx)
	if err != nil {
		return nil, err
	}
	data, ok := notes[name]
	if !ok {
		return nil, &fs.PathError{Op: op, Path: name, Err: fs.ErrNotExist}
	}
	return &object{data: bytes.Clone(data), size: int64(len(data)), modified: at}, nil
}

// notes returns all documents whose names are hidden, and their time.
func (o *Output) notes(ctx context.Context) (map[string][]byte, time.Time, error) {
	if l := o.holder(); l != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.record.clone().notes, l.confirmed, nil
	}
	there, err := o.get(ctx, o.lockKey())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, time.Time{}, nil
	}
	if err != nil {
		return nil, time.Time{}, err
	}
	r, err := decode(there.data)
	return r.notes, there.modified, err
}

// Open implements fs.FS.
func (o *Output) Open(name string) (fs.File, error) {
	there, err := o.find("open", name)
	if err == nil {
		return fstest.MapFS{name: {Data: there.data, Mode: 0o444, ModTime: there.modified}}.Open(name)
	}
	if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errDirectory) {
		return nil, err
	}
	list, failed := o.ReadDir(name)
	switch {
	case failed == nil:
		return &openDirectory{directory(name), list}, nil
	case errors.Is(failed, fs.ErrNotExist):
		return nil, err
	}
	return nil, failed
}

// Stat implements fs.StatFS.
func (o *Output) Stat(name string) (fs.FileInfo, error) {
	if !fs.ValidPath(name) || name == "." || isHidden(name) {
		f, err := o.Open(name)
		if err != nil {
			return nil, err
		}
		return f.Stat()
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	ctx, cancel := o.reading()
	defer cancel()
	l := o.holder()
	there, err := o.head(ctx, o.key(name))
	switch {
	case err == nil:
		if l != nil {
			l.see(name, there.etag)
		}
		return there.info(name), nil
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if found, err := o.list(ctx, o.key(name)+"/", 1); err != nil {
		return nil, err // this error reveals a missing bucket, which head does not
	} else if len(found) > 0 {
		return directory(name), nil
	}
	if l != nil {
		l.see(name, "")
	}
	return nil, &fs.PathError{Op: "stat", Path: name, Err: fs.ErrNotExist}
}

// ReadDir implements fs.ReadDirFS.
func (o *Output) ReadDir(name string) ([]fs.DirEntry, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrInvalid}
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	ctx, cancel := o.reading()
	defer cancel()
	prefix := strings.TrimPrefix(o.key(name)+"/", "./")
	objects, err := o.list(ctx, prefix, 0)
	if err != nil {
		return nil, err
	}
	notes, at, err := o.notes(ctx)
	if err != nil {
		return nil, err
	}
	found := map[string]fs.DirEntry{}
	for _, there := range objects {
		child := strings.TrimPrefix(there.Key, prefix)
		dir := strings.HasSuffix(child, "/")
		if child = strings.TrimSuffix(child, "/"); child != "" && there.Key != o.lockKey() {
			found[child] = fs.FileInfoToDirEntry(fileInfo{child, there.Size, there.LastModified.Truncate(time.Second), mode(dir)}) // as in the header of an answer
		}
	}
	for note, data := range notes {
		below, ok := strings.CutPrefix(note, name+"/")
		if name == "." {
			below, ok = note, true
		}
		if child, _, dir := strings.Cut(below, "/"); ok && found[child] == nil {
			found[child] = fs.FileInfoToDirEntry(fileInfo{child, int64(len(data)), at, mode(dir)})
		}
	}
	if len(found) == 0 && name != "." {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: fs.ErrNotExist}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) }), nil
}

// errDirectory says a directory has no bytes.
var errDirectory = errors.New("is a directory")

// A fileInfo is the fs.FileInfo of a document or a directory.
type fileInfo struct {
	name     string // the last part
	size     int64
	modified time.Time
	mode     fs.FileMode
}

func directory(name string) fileInfo { return fileInfo{name: path.Base(name), mode: mode(true)} }

// mode returns the mode of a file, or directory, that everybody can read.
func mode(dir bool) fs.FileMode {
	if dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

// The methods of fs.FileInfo.

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.size }
func (i fileInfo) ModTime() time.Time { return i.modified }
func (i fileInfo) Mode() fs.FileMode  { return i.mode }
func (i fileInfo) IsDir() bool        { return i.mode.IsDir() }
func (i fileInfo) Sys() any           { return nil }

// An openDirectory is a directory to be listed.
type openDirectory struct {
	info fileInfo
	list []fs.DirEntry // the entries still to return, sorted
}

// The methods of fs.ReadDirFile.

func (d *openDirectory) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *openDirectory) Close() error               { return nil }

func (d *openDirectory) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.name, Err: errDirectory}
}

func (d *openDirectory) ReadDir(n int) ([]fs.DirEntry, error) {
	if n > 0 && len(d.list) == 0 {
		return nil, io.EOF
	}
	if n <= 0 {
		n = len(d.list)
	}
	list := d.list[:min(n, len(d.list))]
	d.list = d.list[len(list):]
	return list, nil
}

// A loggedTransport logs the requests of an Output with a Logger. URLs are logged without
// their queries, which may be signed.
type loggedTransport struct {
	next http.RoundTripper
	of   *Output
}

// RoundTrip implements http.RoundTripper.
func (t *loggedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.of == nil || t.of.Logger == nil {
		return t.next.RoundTrip(r)
	}
	url := *r.URL
	url.RawQuery, url.User = "", nil
	at := slog.String("url", url.String())
	t.of.Logger.LogAttrs(r.Context(), slog.LevelDebug, "request", at, slog.String("method", r.Method))
	began := time.Now()
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		t.of.Logger.LogAttrs(r.Context(), slog.LevelDebug, "failure", at, slog.String("error", err.Error()))
		return resp, err
	}
	t.of.Logger.LogAttrs(r.Context(), slog.LevelDebug, "answer", at, slog.Int("status", resp.StatusCode), slog.Duration("duration", time.Since(began)))
	return resp, nil
}
