package readers

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
)

// mostAnswered is the maximum size of an answer in bytes.
const mostAnswered = 256 << 20

// A Server is a reader's server. Only URL must be set.
type Server struct {
	URL       string // the base of all addresses
	Header    http.Header
	Transport http.RoundTripper // nil means the default
	UserAgent string            // "" means the library's
	Timeout   time.Duration     // for one request with its answer; zero means two minutes

	// Tries, Wait and MaxWait say when to try again after a network error, a server error,
	// or 429: three times, first after a second, at most after 30, if they are zero.
	Tries         int
	Wait, MaxWait time.Duration
	Login         string // the flags to check if the server rejects the credentials; "" for none
}

// A ServerError is an unsuccessful answer.
type ServerError struct {
	URL        string // without its query
	Status     int
	Message    string        // the server's message, or the beginning of its answer
	RetryAfter time.Duration // how long the server asks to be left alone; zero if it does not say
	Login      string        // the Server's
}

// IsLogin reports whether the server rejects the credentials.
func (e *ServerError) IsLogin() bool {
	return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
}

// Error is the server's answer, with advice.
func (e *ServerError) Error() string {
	text := fmt.Sprintf("%s: %d %s", e.URL, e.Status, http.StatusText(e.Status))
	if e.Message != "" {
		text += ": " + e.Message
	}
	if e.IsLogin() {
		text += "; the reader rejected the credentials"
	}
	if e.IsLogin() && e.Login != "" {
		text += ": check " + e.Login
	}
	if e.RetryAfter > 0 {
		text += fmt.Sprintf("; it asks to be left alone for %s", e.RetryAfter.Round(time.Second))
	}
	return text
}

// isPassing reports whether another try may succeed.
func (e *ServerError) isPassing() bool {
	return e.Status == http.StatusTooManyRequests || e.Status >= 500 && e.Status != http.StatusNotImplemented
}

// A callResult is how a successful call went.
type callResult struct {
	Status int // of the answer
	Tries  int // the number of requests
}

// Call sends a request to a path below URL, with a body in JSON, or none if it is nil. It
// repeats the request if it may succeed another time, so it must be repeatable. The answer is
// JSON, and ignored if answer is nil.
func (s *Server) Call(ctx context.Context, method, path string, query url.Values, body, answer any) (callResult, error) {
	address := strings.TrimSuffix(s.URL, "/") + "/" + path
	var sent []byte
	if body != nil {
		var err error
		if sent, err = json.Marshal(body); err != nil {
			return callResult{}, err
		}
	}
	wait := cmp.Or(s.Wait, time.Second)
	for try := 1; ; try++ {
		status, got, err := s.once(ctx, method, address, query, sent)
		if err == nil {
			return callResult{status, try}, decode(address, got, answer)
		}
		if ctx.Err() != nil {
			return callResult{}, ctx.Err()
		}
		failed, refused := errors.AsType[*ServerError](err)
		pause := wait
		if refused {
			pause = max(pause, failed.RetryAfter)
		}
		if refused && !failed.isPassing() && failed.RetryAfter == 0 || try >= cmp.Or(s.Tries, 3) || pause > cmp.Or(s.MaxWait, 30*time.Second) {
			return callResult{}, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return callResult{}, ctx.Err()
		}
		wait *= 2
	}
}

func decode(address string, body []byte, answer any) error {
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("%s: this is not the answer of such a reader: %w", address, err)
	}
	return nil
}

// once sends one request. It follows no redirect: the credentials are for one address.
func (s *Server) once(ctx context.Context, method, address string, query url.Values, sent []byte) (status int, body []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(s.Timeout, 2*time.Minute))
	defer cancel()
	full := address
	if len(query) > 0 {
		full += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, full, bytes.NewReader(sent))
	if err != nil {
		return 0, nil, err
	}
	for name, values := range s.Header {
		r.Header[name] = values
	}
	r.Header.Set("User-Agent", cmp.Or(s.UserAgent, "feedhistory/"+feedhistory.Version))
	if sent != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	client := http.Client{Transport: s.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		if cause := errors.Unwrap(err); cause != nil {
			err = fmt.Errorf("%s: %w", address, cause) // without the query, which may have a secret
		}
		return 0, nil, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, mostAnswered+1))
	switch {
	case err != nil:
		return 0, nil, fmt.Errorf("%s: the answer was cut short: %w", address, err)
	case len(body) > mostAnswered:
		return 0, nil, fmt.Errorf("%s: the answer is larger than %d MiB", address, mostAnswered>>20)
	case resp.StatusCode/100 != 2:
		return 0, nil, &ServerError{
			URL: address, Status: resp.StatusCode, Message: message(resp, body), Login: s.Login,
			RetryAfter: max(0, time.Until(feedhistory.NewFetchError(resp).RetryAt)),
		}
	}
	return resp.StatusCode, body, nil
}

// message returns why a server refuses a request.
func message(resp *http.Response, body []byte) string {
	var answer struct {
		Message string `json:"error_message"`
	}
	if json.Unmarshal(body, &answer) == nil && answer.Message != "" {
		return answer.Message
	}
	if to := resp.Header.Get("Location"); resp.StatusCode/100 == 3 && to != "" {
		return "it redirects to " + to + ", where the credentials are not sent: give that address"
	}
	return strings.ToValidUTF8(strings.TrimSpace(string(body[:min(len(body), 200)])), "")
}

// SetUser makes the header log in with a user and a password.
func (s *Server) SetUser(name, password string) {
	r := http.Request{Header: s.Header}
	r.SetBasicAuth(name, password)
}
