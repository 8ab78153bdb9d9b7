package s3

import (
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	urlpkg "net/url"
	"path"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/feedhistory/feedhistory/publish"
)

// An object is an object in the store.
type object struct {
	data     []byte // nil if it was not requested
	size     int64
	etag     string
	modified time.Time // by the store's clock
	now      time.Time // when the store answered, by the same clock
}

func (o *object) info(name string) fileInfo {
	return fileInfo{Base: path.Base(name), Bytes: o.size, Time: o.modified}
}

func directory(name string) fileInfo { return fileInfo{Base: path.Base(name), Dir: true} }

// get reads an object.
func (o *Output) get(ctx context.Context, key string) (*object, error) {
	var err error
	for range 3 { // an answer may be cut short, and the client does not repeat such a request
		body, info, header, failed := o.core().GetObject(ctx, o.Bucket, key, minio.GetObjectOptions{})
		if failed != nil {
			return nil, o.failure("get", key, failed)
		}
		data, failed := io.ReadAll(body)
		err = errors.Join(failed, body.Close())
		if err == nil && info.Size >= 0 && int64(len(data)) != info.Size {
			err = io.ErrUnexpectedEOF
		}
		if err == nil {
			return &object{data: data, size: int64(len(data)), etag: info.ETag, modified: info.LastModified, now: dateOf(header)}, nil
		}
	}
	return nil, o.failure("get", key, err)
}

// dateOf returns when a response was made, by the store's clock; by ours if the
// response does not say.
func dateOf(header http.Header) time.Time {
	if t, err := http.ParseTime(header.Get("Date")); err == nil {
		return t
	}
	return time.Now()
}

// head returns an object without its data.
func (o *Output) head(ctx context.Context, key string) (*object, error) {
	info, err := o.Client.StatObject(ctx, o.Bucket, key, minio.StatObjectOptions{})
	if err != nil {
		return nil, o.failure("head", key, err)
	}
	return &object{size: info.Size, etag: info.ETag, modified: info.LastModified}, nil
}

// put stores an object if the existing one still has the given ETag or, if the ETag is
// "", if none exists. Otherwise the error matches errCondition.
func (o *Output) put(ctx context.Context, key string, data []byte, was string, how publish.Delivery) (etag string, err error) {
	opts := minio.PutObjectOptions{
		ContentType: how.Type, CacheControl: how.CacheControl,
		// Otherwise the client signs a plain http request in chunks, and some stores keep its
		// Content-Encoding.
		DisableContentSha256: true,
	}
	if was == "" {
		opts.SetMatchETagExcept("*")
	} else {
		opts.SetMatchETag(was)
	}
	md, sha := md5.Sum(data), sha256.Sum256(data)
	info, err := o.core().PutObject(ctx, o.Bucket, key, bytes.NewReader(data), int64(len(data)),
		base64.StdEncoding.EncodeToString(md[:]), hex.EncodeToString(sha[:]), opts)
	if err == nil {
		return info.ETag, nil
	}
	err = o.failure("put", key, err)
	if errors.Is(err, fs.ErrNotExist) && was != "" { // the object to replace is gone
		err = &Error{Op: "put", Bucket: o.Bucket, Key: key, Status: http.StatusNotFound, Err: errCondition}
	}
	return "", err
}

// store is put, and recognises its own bytes: if the answer to a
// request is lost, the request is repeated, and then its condition is not met.
func (o *Output) store(ctx context.Context, key string, data []byte, was string, how publish.Delivery) (etag string, err error) {
	for range 3 {
		etag, err = o.put(ctx, key, data, was, how)
		if !errors.Is(err, errCondition) {
			return etag, err
		}
		there, failed := o.get(ctx, key)
		switch {
		case errors.Is(failed, fs.ErrNotExist):
			if was != "" {
				return "", err
			}
		case failed != nil:
			return "", failed
		case bytes.Equal(there.data, data):
			return there.etag, nil
		case there.etag != was:
			return "", err
		} // else another request was at work at the same time (status 409)
	}
	return "", err
}

// remove deletes an object if it still has the given ETag. The store itself refuses the
// request when the time is over, because its URL is signed for no longer: a process
// frozen just before it sent the request cannot delete a newer object. The condition is
// for stores that honour If-Match in DELETE; others ignore it.
func (o *Output) remove(ctx context.Context, key, etag string, within time.Duration) error {
	header := http.Header{"If-Match": {`"` + etag + `"`}}
	u, err := o.Client.PresignHeader(ctx, http.MethodDelete, o.Bucket, key, max(within.Truncate(time.Second), time.Second), nil, header)
	if err != nil {
		return o.failure("delete", key, err)
	}
	for try := range time.Duration(3) {
		var status int
		if status, err = o.send(ctx, u.String(), header); err == nil && status < http.StatusInternalServerError {
			return o.refusal("delete", key, status)
		}
		select {
		case <-time.After((try + 1) * 100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return o.failure("delete", key, cmp.Or(err, errors.New("the store fails")))
}

// send sends a signed DELETE, and returns the status of the response.
func (o *Output) send(ctx context.Context, url string, header http.Header) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, url, nil)
	if err != nil {
		return 0, err
	}
	req.Header = header.Clone()
	resp, err := cmp.Or(o.HTTP, http.DefaultClient).Do(req)
	if wrapped, ok := errors.AsType[*urlpkg.Error](err); ok {
		err = wrapped.Err // the URL has a signature
	}
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// refusal returns the error for a status.
func (o *Output) refusal(op, key string, status int) error {
	e := &Error{Op: op, Bucket: o.Bucket, Key: key, Status: status, Err: errors.New("the store refuses the request")}
	switch {
	case status < http.StatusMultipleChoices, status == http.StatusNotFound:
		return nil
	case status == http.StatusPreconditionFailed || status == http.StatusConflict:
		e.Err = errCondition
	case status == http.StatusForbidden || status == http.StatusUnauthorized:
		e.Err = ErrCredentials
	}
	return e
}

// verify reads a document back, and returns an error naming the difference: readers
// would see it, too.
func (o *Output) verify(ctx context.Context, key string, data []byte, how publish.Delivery) error {
	body, _, header, err := o.core().GetObject(ctx, o.Bucket, key, minio.GetObjectOptions{})
	if err != nil {
		return o.failure("get", key, err)
	}
	got, err := io.ReadAll(body)
	if err := errors.Join(err, body.Close()); err != nil {
		return o.failure("get", key, err)
	}
	served, _, _ := mime.ParseMediaType(header.Get("Content-Type"))
	wanted, _, _ := mime.ParseMediaType(how.Type)
	what := ""
	switch coding := header.Get("Content-Encoding"); {
	case coding != "":
		what = "it has the Content-Encoding " + coding
	case served != wanted:
		what = fmt.Sprintf("its Content-Type is %q, not %q", served, wanted)
	case !bytes.Equal(got, data):
		what = fmt.Sprintf("it has %d other bytes instead of %d", len(got), len(data))
	default:
		return nil
	}
	return &Error{Op: "get", Bucket: o.Bucket, Key: key, Status: http.StatusOK, Err: fmt.Errorf("%w: %s", ErrAltered, what)}
}

// list returns the keys with a prefix. Directories are keys with a slash at the end.
func (o *Output) list(ctx context.Context, prefix string, most int) (found []minio.ObjectInfo, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // this ends the listing
	for info := range o.Client.ListObjectsIter(ctx, o.Bucket, minio.ListObjectsOptions{Prefix: prefix, MaxKeys: most}) {
		if info.Err != nil {
			return nil, o.failure("list", prefix, info.Err)
		}
		if found = append(found, info); most > 0 && len(found) == most {
			break
		}
	}
	return found, nil
}

func (o *Output) core() minio.Core { return minio.Core{Client: o.Client} }
