package s3

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"github.com/minio/minio-go/v7"

	"github.com/feedhistory/feedhistory/publish"
)

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
