// Package download fetches the files of a mirror's entries, such as the episodes of a
// podcast: each once, resumed after an interruption, under a name of its own.
package download

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A File is a file to download.
type File struct {
	Feed   string // Feed is the URL by which the mirror names the feed.
	URL    string
	Name   string // Name is the path below the directory, without a number against a collision.
	Length int64  // Length is the number of bytes given by the feed; 0 if it gives none.
	Type   string // Type is the media type given by the feed; "" if it gives none.
}

// A Result is the outcome of a File.
type Result struct {
	File
	Saved   string   // Saved is the path of the file below the directory; "" after an error.
	Bytes   int64    // Bytes is the size of the file.
	Differs []string // Differs says where the file is not as the feed says.
	Err     error
}

// A Downloader downloads files into a directory.
type Downloader struct {
	Root       *os.Root
	Records    *Records
	Transport  http.RoundTripper                         // Transport refuses private addresses, unless they are allowed.
	UserAgent  string                                    //
	Credential func(feed string) *feedhistory.Credential // Credential returns the credential required by a feed's origin; nil means none.
	Parallel   int                                       // Parallel is the number of hosts at the same time; 0 means 4.
	Pause      time.Duration                             // Pause is the time between two requests to a host.
	MaxBytes   int64                                     // MaxBytes is the maximum size of a file; 0 means 10 GiB.

	// Each is called after each file, and Read for each part of a file. Neither is called
	// twice at the same time; nil means nobody.
	Each func(Result)
	Read func(bytes int)

	mu    sync.Mutex
	names *names
}

const (
	defaultParallel = 4
	defaultMaxBytes = 10 << 30
	idle            = 30 * time.Second // the maximum time without a byte
)

// Download downloads files: those of one host one after the other, and several hosts at
// the same time. It returns an error of the directory or the records, or the context's.
func (d *Downloader) Download(ctx context.Context, files []File) (err error) {
	if d.names, err = namesIn(d.Root); err != nil {
		return err
	}
	hosts, order := map[string][]File{}, []string{}
	for _, f := range files {
		host := feedhistory.HostOf(f.URL)
		if hosts[host] == nil {
			order = append(order, host)
		}
		hosts[host] = append(hosts[host], f)
	}
	parallel := d.Parallel
	if parallel < 1 {
		parallel = defaultParallel
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	free := make(chan struct{}, parallel)
	var all sync.WaitGroup
	for _, host := range order {
		all.Go(func() {
			select {
			case free <- struct{}{}:
				defer func() { <-free }()
				if err := d.host(ctx, hosts[host]); err != nil {
					cancel(err)
				}
			case <-ctx.Done():
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// host downloads the files of one host. If the host asks for a pause, the rest waits for
// another run.
func (d *Downloader) host(ctx context.Context, files []File) error {
	for i, f := range files {
		if i > 0 {
			select {
			case <-time.After(d.Pause):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		r := d.file(ctx, f)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if broken, ok := errors.AsType[*localError](r.Err); ok {
			return broken.err
		}
		d.tell(r)
		status, ok := errors.AsType[*feedhistory.StatusError](r.Err)
		if ok && (status.Status == http.StatusTooManyRequests || status.Status == http.StatusServiceUnavailable) {
			for _, left := range files[i+1:] {
				d.tell(Result{File: left, Err: fmt.Errorf("not requested, because its host asks for a pause: %w", r.Err)})
			}
			return nil
		}
	}
	return nil
}

func (d *Downloader) tell(r Result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.Each != nil {
		d.Each(r)
	}
}

// A localError is an error of this machine, after which no other file can be saved either.
type localError struct{ err error }

// Error returns the message.
func (e *localError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *localError) Unwrap() error { return e.err }

// file downloads one file.
func (d *Downloader) file(ctx context.Context, f File) (r Result) {
	r.File = f
	part := partName(f)
	begun, err := d.Records.Part(ctx, f)
	if err != nil {
		r.Err = &localError{err}
		return r
	}
	var size int64
	if info, err := d.Root.Stat(part); err == nil && begun != "" {
		size = info.Size()
	}
	resp, err := d.request(ctx, f, size, begun)
	if err != nil {
		r.Err = err
		return r
	}
	defer resp.Body.Close()
	if r.Err = d.save(ctx, f, resp, part); r.Err != nil {
		return r
	}
	info, err := d.Root.Stat(part)
	if err != nil {
		r.Err = &localError{err}
		return r
	}
	r.Bytes, r.Differs = info.Size(), differences(f, info.Size(), resp.Header.Get("Content-Type"))
	if r.Saved, err = d.settle(part, f); err == nil {
		err = d.Records.Taken(ctx, f, r.Saved, r.Bytes)
	}
	if err != nil {
		r.Err = &localError{err}
	}
	return r
}

// save writes an answer to the temporary file, which it syncs.
func (d *Downloader) save(ctx context.Context, f File, resp *http.Response, part string) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if resp.StatusCode == http.StatusPartialContent {
		flags = os.O_WRONLY | os.O_APPEND
	}
	if err := d.Records.Begin(ctx, f, validatorOf(resp.Header)); err != nil {
		return &localError{err}
	}
	out, err := d.Root.OpenFile(part, flags, 0o644)
	if err != nil {
		return &localError{err}
	}
	most := d.MaxBytes
	if most <= 0 {
		most = defaultMaxBytes
	}
	n, err := io.Copy(&counter{out, d}, io.LimitReader(&patient{resp.Body, time.AfterFunc(idle, func() { _ = resp.Body.Close() })}, most+1))
	if failed := errors.Join(out.Sync(), out.Close()); failed != nil {
		return &localError{failed}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case n > most:
		return errors.Join(fmt.Errorf("larger than %d bytes", most), d.Root.Remove(part))
	case err != nil:
		if local, ok := errors.AsType[*localError](err); ok {
			return local
		}
		return &CutError{URL: f.URL, Err: err}
	}
	return nil
}

// settle gives a complete file its name.
func (d *Downloader) settle(part string, f File) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	name := d.names.free(f.Name)
	if i := strings.LastIndexByte(name, '/'); i > 0 {
		if err := d.Root.MkdirAll(name[:i], 0o755); err != nil {
			return "", err
		}
	}
	if err := d.Root.Rename(part, name); err != nil {
		return "", err
	}
	d.names.take(name)
	return name, nil
}

// A CutError reports an interrupted download. Another run continues it.
type CutError struct {
	URL string
	Err error
}

// Error returns the message, without the URL.
func (e *CutError) Error() string { return "cut short; another run continues there" }

// Detail returns the message.
func (e *CutError) Detail() string { return e.Error() }

// Unwrap returns the cause.
func (e *CutError) Unwrap() error { return e.Err }

// A counter counts the bytes written to a file.
type counter struct {
	out *os.File
	d   *Downloader
}

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	n, err := c.out.Write(p)
	if c.d.Read != nil {
		c.d.mu.Lock()
		c.d.Read(n)
		c.d.mu.Unlock()
	}
	if err != nil {
		err = &localError{err}
	}
	return n, err
}

// A patient reader closes the body after a time without a byte.
type patient struct {
	io.Reader
	timer *time.Timer
}

// Read implements io.Reader.
func (p *patient) Read(b []byte) (int, error) {
	p.timer.Reset(idle)
	n, err := p.Reader.Read(b)
	if err != nil {
		p.timer.Stop()
	}
	return n, err
}
