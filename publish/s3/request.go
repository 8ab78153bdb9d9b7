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
	"net/url"
	"os"
	"path"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// An object is an object in the store.
type object struct {
	data     []byte // nil if it was not requested
	size     int64
	etag     string
	modified time.Time // by the store's clock
	now      time.Time // when the store answered, by the same clock

	kind, coding string // its Content-Type and Content-Encoding
}

func (o *object) info(name string) fileInfo {
	return fileInfo{path.Base(name), o.size, o.modified, 0o444}
}

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
			return &object{
				data: data, size: int64(len(data)), etag: info.ETag, modified: info.LastModified, now: dateOf(header),
				kind: header.Get("Content-Type"), coding: header.Get("Content-Encoding"),
			}, nil
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
		switch status, err = o.send(ctx, u.String(), header); {
		case err != nil || status >= http.StatusInternalServerError:
		case status < http.StatusMultipleChoices, status == http.StatusNotFound:
			return nil
		default:
			return o.failure("delete", key, minio.ErrorResponse{StatusCode: status, Code: http.StatusText(status), Message: "the store refuses the request"})
		}
		select {
		case <-time.After((try + 1) * 100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return o.failure("delete", key, cmp.Or(err, errors.New("the store fails")))
}

// send sends a signed DELETE, and returns the status of the response.
func (o *Output) send(ctx context.Context, address string, header http.Header) (status int, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodDelete, address, nil)
	if err != nil {
		return 0, err
	}
	req.Header = header.Clone()
	resp, err := cmp.Or(o.HTTP, http.DefaultClient).Do(req)
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // the URL has a signature
	}
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// verify reads a document back, and returns an error naming the difference: readers
// would see it, too.
func (o *Output) verify(ctx context.Context, key string, data []byte, how publish.Delivery) error {
	got, err := o.get(ctx, key)
	if err != nil {
		return err
	}
	served, _, _ := mime.ParseMediaType(got.kind)
	wanted, _, _ := mime.ParseMediaType(how.Type)
	what := ""
	switch {
	case got.coding != "":
		what = "it has the Content-Encoding " + got.coding
	case served != wanted:
		what = fmt.Sprintf("its Content-Type is %q, not %q", served, wanted)
	case !bytes.Equal(got.data, data):
		what = fmt.Sprintf("it has %d other bytes instead of %d", len(got.data), len(data))
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

// FromEnvironment returns an Output for a URL like s3://bucket/prefix, with the
// settings AWS's own tools read from the environment:
//
//   - AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; or else
//     the file ~/.aws/credentials (AWS_SHARED_CREDENTIALS_FILE, AWS_PROFILE);
//     or else the role of a web identity or a container, if a variable set by
//     AWS names one;
//   - AWS_REGION or AWS_DEFAULT_REGION; without them AWS is asked for the
//     bucket's region, and other stores get us-east-1;
//   - AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, if endpoint is "": the URL of a store
//     other than Amazon's.
//
// Without credentials the error matches ErrCredentials. FromEnvironment makes
// no request.
func FromEnvironment(target, endpoint string) (*Output, error) {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "s3" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("not of the form s3://bucket/prefix") // the URL may contain a password
	}
	keys, err := environmentCredentials()
	if err != nil {
		return nil, err
	}
	endpoint = cmp.Or(endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	region := cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	at := &url.URL{Scheme: "https", Host: "s3.amazonaws.com"}
	if endpoint != "" {
		region = cmp.Or(region, "us-east-1")
		at, err = url.Parse(endpoint)
		if err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" || at.User != nil || strings.Trim(at.Path, "/") != "" {
			return nil, errors.New("the endpoint is not of the form https://host")
		}
	}
	transport, err := minio.DefaultTransport(at.Scheme == "https")
	if err != nil {
		return nil, err
	}
	logged := &loggedTransport{next: transport}
	client, err := minio.New(at.Host, &minio.Options{Creds: keys, Secure: at.Scheme == "https", Region: region, Transport: logged})
	if err != nil {
		return nil, err
	}
	client.SetAppInfo("feedhistory", feedhistory.Version)
	o := &Output{Client: client, Bucket: u.Host, Prefix: strings.Trim(u.Path, "/"), HTTP: &http.Client{Transport: logged}}
	logged.of = o
	return o, o.check()
}

// environmentCredentials returns the first credentials it finds.
func environmentCredentials() (*credentials.Credentials, error) {
	sources := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
	for _, name := range []string{"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"} {
		if os.Getenv(name) != "" {
			return credentials.NewChainCredentials(append(sources, &credentials.IAM{})), nil
		}
	}
	keys := credentials.NewChainCredentials(sources)
	if value, err := keys.GetWithContext(nil); err != nil || value.AccessKeyID == "" || value.SecretAccessKey == "" {
		return nil, fmt.Errorf("%w: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE", ErrCredentials)
	}
	return keys, nil
}

// The errors an Error matches, unless its Err is the client's: a failing network, for
// instance.
var (
	// ErrConditions means the store does not honour If-None-Match and If-Match, so two
	// publishers could destroy each other's work. Nothing has been published.
	ErrConditions = errors.New("the store does not honour conditional writes (If-None-Match, If-Match)")
	// ErrAltered means the store does not return a document as it was put: in another
	// encoding, with another type, or with other bytes.
	ErrAltered = errors.New("the store does not return the document as it was put")
	// ErrCredentials means there are no credentials, or the store refuses them, or they do
	// not permit the operation.
	ErrCredentials = errors.New("the store refuses the credentials, or they do not permit this")
	// ErrBucket means there is no such bucket.
	ErrBucket = errors.New("there is no such bucket")
	// ErrChanged means somebody without the lock has changed the document since it was
	// read. The document is left unchanged.
	ErrChanged = errors.New("somebody who does not hold the lock has changed the document")
	// ErrLost means the lease has expired, because the process or its network was
	// suspended, and another writer may have taken the lock. It matches publish.ErrLocked.
	ErrLost = fmt.Errorf("the lock was lost: %w", publish.ErrLocked)
	// ErrNotLocked means Put or Remove was called without holding the lock.
	ErrNotLocked = errors.New("only the holder of the lock may write")
)

// errCondition says the condition of a request was not met.
var errCondition = errors.New("the object is not as expected")

// An Error says which request to the store failed, and why.
type Error struct {
	Op     string // "get", "put", "delete" …
	Bucket string
	Key    string // the key of the object
	Status int    // the status of the response; zero if there was none
	Err    error  // ErrConditions, ErrCredentials, ErrBucket …, or the client's error
}

// Error returns a text with all fields.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s s3://%s/%s: %v", e.Op, e.Bucket, e.Key, e.Err)
	if e.Status > 0 {
		text += fmt.Sprintf(" (status %d)", e.Status)
	}
	return text
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// failure translates an error of the client.
func (o *Output) failure(op, key string, err error) error {
	resp, ok := errors.AsType[minio.ErrorResponse](err)
	if !ok {
		return &Error{Op: op, Bucket: o.Bucket, Key: key, Err: err}
	}
	e := &Error{Op: op, Bucket: o.Bucket, Key: key, Status: resp.StatusCode, Err: err}
	reason := func(why error) { e.Err = fmt.Errorf("%w: %s (%s)", why, resp.Message, resp.Code) }
	switch {
	case resp.Code == minio.NoSuchBucket:
		reason(ErrBucket)
	case resp.Code == minio.NoSuchKey || resp.StatusCode == http.StatusNotFound:
		e.Err = fs.ErrNotExist
	case resp.StatusCode == http.StatusPreconditionFailed || resp.StatusCode == http.StatusConflict ||
		resp.StatusCode == http.StatusNotModified: // old MinIOs answer so
		e.Err = errCondition
	case resp.StatusCode == http.StatusNotImplemented:
		reason(ErrConditions)
	case resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusUnauthorized || isCredentials(resp.Code):
		reason(ErrCredentials)
	}
	return e
}

// isCredentials reports whether an error code is about credentials; not every
// store sends such a code with 403.
func isCredentials(code string) bool {
	switch code {
	case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "AuthorizationHeaderMalformed":
		return true
	}
	return false
}
