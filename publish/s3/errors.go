package s3

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"

	"github.com/minio/minio-go/v7"

	"github.com/feedhistory/feedhistory/publish"
)

// What went wrong: what an error of an Output matches.
var (
	// ErrConditions: the store does not honour If-None-Match and If-Match, so two
	// publishers could destroy each other's work. Nothing has been published.
	ErrConditions = errors.New("the store does not honour conditional writes (If-None-Match, If-Match)")
	// ErrCredentials: there are no credentials, or the store refuses them, or they
	// do not permit the operation.
	ErrCredentials = errors.New("the store refuses the credentials, or they do not permit this")
	// ErrBucket: there is no such bucket.
	ErrBucket = errors.New("there is no such bucket")
	// ErrChanged: somebody who does not hold the lock has changed the document
	// since it was read. It is left as it is.
	ErrChanged = errors.New("somebody who does not hold the lock has changed the document")
	// ErrLost: the lock's time ran out, for the process or its network stood
	// still, and another writer may have taken it. It matches publish.ErrLocked.
	ErrLost = fmt.Errorf("the lock was lost: %w", publish.ErrLocked)
	// ErrNotLocked: Put or Remove was called by somebody who does not hold the
	// lock.
	ErrNotLocked = errors.New("only the holder of the lock may write")
)

// errCondition is a condition that was not met.
var errCondition = errors.New("the object is not as it was")

// An Error says which request to the store failed, and why.
type Error struct {
	Op     string // "get", "put", "delete" …
	Bucket string
	Key    string // of the object
	Status int    // of the response; zero: there was none
	Err    error  // ErrConditions, ErrCredentials, ErrBucket …, or what the client said
}

// Error returns all of that.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s s3://%s/%s: %v", e.Op, e.Bucket, e.Key, e.Err)
	if e.Status > 0 {
		text += fmt.Sprintf(" (status %d)", e.Status)
	}
	return text
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// failure says what an error of the client's means.
func (o *Output) failure(op, key string, err error) error {
	var resp minio.ErrorResponse
	if !errors.As(err, &resp) {
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
		resp.StatusCode == http.StatusNotModified: // as old MinIOs have it
		e.Err = errCondition
	case resp.StatusCode == http.StatusNotImplemented:
		reason(ErrConditions)
	case resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusUnauthorized || isCredentials(resp.Code):
		reason(ErrCredentials)
	}
	return e
}

// isCredentials reports whether a code, which not every store sends with 403,
// speaks of credentials.
func isCredentials(code string) bool {
	switch code {
	case "AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken", "AuthorizationHeaderMalformed":
		return true
	}
	return false
}
