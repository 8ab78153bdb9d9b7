package s3

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/publish"
)

// Put implements publish.Output.
//
// A new archive is put with If-None-Match, because nobody knows it until another
// document links to it. Any other write is first recorded in the lock's object, and
// then put with If-Match. So a writer without the lock cannot change anything, and the
// next holder finishes the changes a killed writer has recorded.
func (o *Output) Put(ctx context.Context, name string, data []byte) error {
	if err := publish.CheckName("put", name); err != nil {
		return err
	}
	l := o.holder()
	if l == nil {
		return &Error{Op: "put", Bucket: o.Bucket, Key: o.key(name), Err: ErrNotLocked}
	}
	ctx, cancel := o.during(ctx, l)
	defer cancel()
	if isHidden(name) {
		return l.change(ctx, func(r *record) { r.notes[name] = bytes.Clone(data) })
	}
	if err := l.carryOut(ctx, name); err != nil {
		return err
	}
	was, err := l.known(ctx, name)
	if err != nil {
		return err
	}
	if was == "" && publish.DeliveryOf(name, data, 0).Archive {
		if err := l.renew(ctx); err != nil {
			return err
		}
		return l.put(ctx, name, write{data: data})
	}
	w := write{was: was, data: bytes.Clone(data)}
	if err := l.change(ctx, func(r *record) { r.writes[name] = w }); err != nil {
		return err
	}
	return l.carryOut(ctx, name)
}

// isHidden reports whether a name is not for readers.
func isHidden(name string) bool { return strings.HasPrefix(name, ".") || strings.Contains(name, "/.") }

// renew makes sure most of the lease is left.
func (l *lease) renew(ctx context.Context) error {
	l.mu.Lock()
	fresh := !l.hasRunOut() && l.asked == nil && elapsed(l.confirmed) < l.record.lease/10
	l.mu.Unlock()
	if fresh {
		return nil
	}
	return l.change(ctx, nil)
}

// carryOut does the recorded change of a document, if there is one.
func (l *lease) carryOut(ctx context.Context, name string) error {
	l.mu.Lock()
	w, ok := l.record.writes[name]
	l.mu.Unlock()
	if !ok || w.done {
		return nil
	}
	err := l.put(ctx, name, w)
	if err == nil || errors.Is(err, ErrChanged) {
		l.mu.Lock()
		defer l.mu.Unlock()
		if now, ok := l.record.writes[name]; ok {
			now.done = true
			l.record.writes[name] = now
		}
	}
	return err
}

// put puts a document, and remembers its ETag.
func (l *lease) put(ctx context.Context, name string, w write) error {
	key, how := l.o.key(name), publish.DeliveryOf(name, w.data, l.o.MaxAge)
	etag, err := l.o.store(ctx, key, w.data, w.was, how)
	switch {
	case err == nil:
		l.tags.Store(name, etag)
		if how.Archive || l.o.verified.Swap(true) {
			return nil
		}
		err := l.o.verify(ctx, key, w.data, how) // once, for the first document readers request
		l.o.verified.Store(err == nil)
		return err
	case errors.Is(err, errCondition): // changed by the next holder, if there is one
		if err := l.change(ctx, nil); err != nil {
			return err
		}
		l.tags.Delete(name)
		return &Error{Op: "put", Bucket: l.o.Bucket, Key: key, Err: ErrChanged}
	}
	l.tags.Delete(name)
	return l.failed(err)
}

// Remove implements publish.Output. Not every store has a conditional DELETE, so Remove
// renews the lease first, and signs a request valid only as long as the lease.
func (o *Output) Remove(ctx context.Context, name string) error {
	if err := publish.CheckName("remove", name); err != nil {
		return err
	}
	l := o.holder()
	if l == nil {
		return &Error{Op: "delete", Bucket: o.Bucket, Key: o.key(name), Err: ErrNotLocked}
	}
	ctx, cancel := o.during(ctx, l)
	defer cancel()
	if isHidden(name) {
		return l.change(ctx, func(r *record) { delete(r.notes, name) })
	}
	if err := l.carryOut(ctx, name); err != nil && !errors.Is(err, ErrChanged) {
		return err
	}
	if err := l.change(ctx, nil); err != nil {
		return err
	}
	etag, err := l.known(ctx, name)
	if err != nil || etag == "" {
		return err
	}
	l.tags.Delete(name)
	l.mu.Lock()
	until := l.confirmed.Add(l.record.lease)
	l.mu.Unlock()
	ctx, done := context.WithDeadline(ctx, until)
	defer done()
	switch err := o.remove(ctx, o.key(name), etag, time.Until(until)-l.ahead); {
	case errors.Is(err, errCondition):
		return &Error{Op: "delete", Bucket: o.Bucket, Key: o.key(name), Err: ErrChanged}
	case err != nil:
		return l.failed(err)
	}
	l.tags.Store(name, "")
	return nil
}

// known returns the ETag of the document the holder knows or, if it knows
// none, of the existing one.
func (l *lease) known(ctx context.Context, name string) (string, error) {
	if etag, ok := l.tags.Load(name); ok {
		return etag.(string), nil
	}
	there, err := l.o.head(ctx, l.o.key(name))
	if errors.Is(err, fs.ErrNotExist) {
		return l.see(name, ""), nil
	}
	if err != nil {
		return "", l.failed(err)
	}
	return l.see(name, there.etag), nil
}

// see records the ETag of a document read. A known ETag takes precedence, so a change
// by somebody else is noticed.
func (l *lease) see(name, etag string) string {
	known, _ := l.tags.LoadOrStore(name, etag)
	return known.(string)
}

// key returns the key of the object with a name.
func (o *Output) key(name string) string {
	if prefix := strings.Trim(o.Prefix, "/"); prefix != "" {
		return path.Join(prefix, name)
	}
	return name
}
