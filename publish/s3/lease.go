package s3

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory/publish"
)

// A lease is the lock, as its holder knows it.
type lease struct {
	o      *Output
	ctx    context.Context // ends when the lock is lost
	lose   context.CancelCauseFunc
	caller context.Context // of Lock
	beats  sync.WaitGroup
	resign chan struct{} // closed by unlock
	ahead  time.Duration // how far our clock is ahead of the store's, at most; zero if it is behind

	mu        sync.Mutex // held while changing the record
	record    record
	etag      string    // the ETag of the lock's object
	confirmed time.Time // the time just before the last successful change; the lease counts from there
	asked     *question // a change whose outcome is unknown; nil if there is none

	tags sync.Map // by name, the ETag of the document the holder knows; "" if it does not exist
}

// A question is a requested change.
type question struct {
	record record
	data   []byte
	begun  time.Time
}

const lockName = ".lock"

func (o *Output) lockKey() string { return o.key(lockName) }

// served is how the lock's object is stored.
var served = publish.Delivery{Type: "application/octet-stream", CacheControl: "no-store"}

// Lock implements publish.Output. The lock of a crashed writer becomes free when its
// lease has expired. Lock then finishes the changes recorded by the writer. Until the
// unlock, the context also ends this Output's methods of fs.FS, which have none.
func (o *Output) Lock(ctx context.Context) (unlock func() error, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.held != nil {
		return nil, publish.ErrLocked
	}
	caller := ctx
	ctx, cancel := o.context(ctx)
	defer cancel()
	l, err := o.take(ctx)
	if err != nil {
		return nil, err
	}
	l.caller = caller
	if err := l.begin(ctx); err != nil {
		l.giveUp(ctx)
		return nil, err
	}
	o.held = l
	every := l.record.lease / 3
	l.beats.Go(func() { l.beat(every) })
	return sync.OnceValue(l.unlock), nil
}

// take takes the lock, if it is free.
func (o *Output) take(ctx context.Context) (*lease, error) {
	begun := time.Now()
	var last record
	there, err := o.get(ctx, o.lockKey())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		there = &object{}
	case err != nil:
		return nil, err
	default:
		if last, err = decode(there.data); err != nil {
			return nil, fmt.Errorf("s3://%s/%s: %w", o.Bucket, o.lockKey(), err)
		}
		// Both times are the store's: no other clock counts. They have whole
		// seconds.
		if until := there.modified.Add(last.lease + last.lease/10 + 2*time.Second); !last.free && !there.now.After(until) {
			return nil, fmt.Errorf("s3://%s/%s: %w; if it has crashed, the lock is free in %v",
				o.Bucket, o.lockKey(), publish.ErrLocked, until.Sub(there.now)+time.Second)
		}
	}
	next := last.clone()
	next.holder, next.lease, next.free = rand.Text(), o.lease(), false
	next.sequence++
	l := &lease{o: o, record: next, etag: there.etag, confirmed: begun, resign: make(chan struct{})}
	l.ctx, l.lose = context.WithCancelCause(context.Background())
	if !there.now.IsZero() {
		l.ahead = max(0, time.Since(there.now)) // the store answered some time ago, in whole seconds
	}
	l.asked = &question{next, next.encode(), begun}
	etag, err := o.store(ctx, o.lockKey(), l.asked.data, there.etag, served)
	switch {
	case err == nil:
		l.accept(etag)
		return l, nil
	case errors.Is(err, errCondition): // another writer was faster
		err = fmt.Errorf("s3://%s/%s: %w", o.Bucket, o.lockKey(), publish.ErrLocked)
	case ctx.Err() != nil: // the store may have the request nevertheless
		l.giveUp(ctx)
	}
	return nil, err
}

// giveUp releases the lock even if the context has ended.
func (l *lease) giveUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	l.free(ctx)
	l.lose(ErrNotLocked)
}

// begin finishes the recorded changes of a crashed holder.
func (l *lease) begin(ctx context.Context) error {
	if err := l.probe(ctx); err != nil {
		return err
	}
	if len(l.record.writes) == 0 {
		return nil
	}
	for name := range l.record.writes {
		if err := l.carryOut(ctx, name); err != nil && !errors.Is(err, ErrChanged) {
			return err
		}
	}
	return l.change(ctx, nil)
}

// probe checks once whether the store honours conditions. It writes the present bytes
// again, under unmet conditions.
func (l *lease) probe(ctx context.Context) error {
	if l.o.probed {
		return nil
	}
	for _, was := range []string{"", "00000000000000000000000000000000"} {
		_, err := l.o.put(ctx, l.o.lockKey(), l.record.encode(), was, served)
		if err == nil {
			return &Error{Op: "put", Bucket: l.o.Bucket, Key: l.o.lockKey(), Err: ErrConditions}
		}
		if !errors.Is(err, errCondition) {
			return err
		}
	}
	l.o.probed = true
	return nil
}

// beat renews the lease as long as it is held.
func (l *lease) beat(every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-l.resign:
			return
		case <-l.ctx.Done():
			return
		case <-tick.C:
			ctx, cancel := l.o.context(l.ctx)
			_ = l.change(ctx, nil) // if it fails for long, the lease expires
			cancel()
		}
	}
}

// change changes the record; if edit is nil, it only renews the lease. If it
// returns nil, the caller held the lock when the store made the change.
func (l *lease) change(ctx context.Context, edit func(*record)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	ctx, cancel := context.WithDeadline(ctx, l.confirmed.Add(l.record.lease))
	defer cancel()
	for range 3 {
		if err := l.settle(ctx); err != nil {
			return err
		}
		next := l.record.clone()
		next.sequence++
		if edit != nil {
			edit(&next)
		}
		l.asked = &question{next, next.encode(), time.Now()}
		etag, err := l.o.store(ctx, l.o.lockKey(), l.asked.data, l.etag, served)
		if err == nil {
			l.accept(etag)
			return nil
		}
		if !errors.Is(err, errCondition) {
			return l.failed(err)
		}
	}
	return l.lost()
}

// settle finds out whether the last change was made, if this is unknown, and whether
// the lease is still valid.
func (l *lease) settle(ctx context.Context) error {
	if l.hasRunOut() {
		return l.lost()
	}
	if l.asked == nil {
		return nil
	}
	there, err := l.o.get(ctx, l.o.lockKey())
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l.lost()
	case err != nil:
		return l.failed(err)
	case bytes.Equal(there.data, l.asked.data):
		l.accept(there.etag)
	case there.etag == l.etag:
		l.asked = nil
	default:
		return l.lost()
	}
	return nil
}

func (l *lease) accept(etag string) {
	l.record, l.confirmed, l.etag, l.asked = l.asked.record, l.asked.begun, etag, nil
}

// hasRunOut reports whether another writer may have the lock.
func (l *lease) hasRunOut() bool {
	return l.ctx.Err() != nil || elapsed(l.confirmed) >= l.record.lease
}

// elapsed returns the time since t by whichever clock has advanced more,
// because one of them stops while the machine sleeps.
func elapsed(t time.Time) time.Duration {
	return max(time.Since(t), time.Now().Round(0).Sub(t.Round(0)))
}

// lost ends everything the holder is doing.
func (l *lease) lost() error {
	l.lose(ErrLost)
	return &Error{Op: "put", Bucket: l.o.Bucket, Key: l.o.lockKey(), Err: ErrLost}
}

// failed returns the error of a request, or its cause: the lease may have expired
// meanwhile.
func (l *lease) failed(err error) error {
	if l.hasRunOut() {
		return l.lost()
	}
	return err
}

// releaseTime is the maximum time to release the lock: whoever has interrupted a writer
// waits for it.
const releaseTime = 10 * time.Second

// unlock releases the lock. If this fails, the lock becomes free by itself, and nothing
// published is lost, so there is no error to report.
func (l *lease) unlock() error {
	close(l.resign)
	l.beats.Wait()
	ctx, cancel := context.WithTimeout(l.ctx, releaseTime)
	defer cancel()
	l.free(ctx)
	l.lose(ErrNotLocked)
	l.o.mu.Lock()
	defer l.o.mu.Unlock()
	l.o.held = nil
	return nil
}

func (l *lease) free(ctx context.Context) { _ = l.change(ctx, func(r *record) { r.free = true }) }

// lease returns how long the lock is held without being renewed.
func (o *Output) lease() time.Duration { return cmp.Or(o.Lease, time.Minute) }

// A record is the content of the lock's object. Every decision is a change of the
// record, which is replaced by compare-and-swap, so a writer without the lock can
// decide nothing.
type record struct {
	holder   string // unique for each holder
	sequence int64  // increases with each change, so no two records are equal
	lease    time.Duration
	free     bool // whether the holder has unlocked it

	// notes are the documents whose names are hidden, the note of a Publisher
	// included.
	notes map[string][]byte

	// writes are changes recorded but perhaps not done: a writer that takes the lock from
	// a crashed holder does them first. A finished write is removed with the next change.
	writes map[string]write
}

// A write is the replacement of a document.
type write struct {
	was  string // the ETag of the document it replaces; "" if there was none
	data []byte
	done bool
}

func (r record) clone() record {
	r.notes, r.writes = maps.Clone(r.notes), maps.Clone(r.writes)
	if r.notes == nil {
		r.notes = map[string][]byte{}
	}
	if r.writes == nil {
		r.writes = map[string]write{}
	}
	maps.DeleteFunc(r.writes, func(_ string, w write) bool { return w.done })
	return r
}

// A header is the first part of the encoding, a line of JSON. The data of all
// notes and writes follows.
type header struct {
	Format   string `json:"format"`
	Holder   string `json:"holder"`
	Sequence int64  `json:"sequence"`
	Lease    int64  `json:"lease_ms"`
	Free     bool   `json:"free"`
	Notes    []part `json:"notes,omitempty"`
	Writes   []part `json:"writes,omitempty"`
}

type part struct {
	Name string `json:"name"`
	Was  string `json:"was,omitempty"`
	Size int    `json:"size"`
}

const format = "feedhistory-lock-1"

// errRecord says the lock's object was not written by this package.
var errRecord = errors.New("not a lock that feedhistory wrote")

func (r record) encode() []byte {
	h := header{Format: format, Holder: r.holder, Sequence: r.sequence, Lease: r.lease.Milliseconds(), Free: r.free}
	var rest []byte
	for _, name := range slices.Sorted(maps.Keys(r.notes)) {
		h.Notes = append(h.Notes, part{Name: name, Size: len(r.notes[name])})
		rest = append(rest, r.notes[name]...)
	}
	for _, name := range slices.Sorted(maps.Keys(r.writes)) {
		w := r.writes[name]
		h.Writes = append(h.Writes, part{Name: name, Was: w.was, Size: len(w.data)})
		rest = append(rest, w.data...)
	}
	line, _ := json.Marshal(h) // cannot fail for strings and numbers
	return append(append(line, '\n'), rest...)
}

func decode(data []byte) (record, error) {
	line, rest, ok := bytes.Cut(data, []byte("\n"))
	var h header
	if err := json.Unmarshal(line, &h); !ok || err != nil || h.Format != format {
		return record{}, errors.Join(errRecord, err)
	}
	r := record{holder: h.Holder, sequence: h.Sequence, lease: time.Duration(h.Lease) * time.Millisecond, free: h.Free}.clone()
	for i, p := range slices.Concat(h.Notes, h.Writes) {
		if p.Size < 0 || p.Size > len(rest) {
			return record{}, fmt.Errorf("%w: it is cut short", errRecord)
		}
		data := rest[:p.Size:p.Size]
		if rest = rest[p.Size:]; i < len(h.Notes) {
			r.notes[p.Name] = data
		} else {
			r.writes[p.Name] = write{was: p.Was, data: data}
		}
	}
	return r, nil
}
