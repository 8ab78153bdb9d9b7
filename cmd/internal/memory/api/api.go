// Package api calls the HTTP interfaces of feed readers.
package api

import (
	"cmp"
	"context"
	"encoding/base64"
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
const mostAnswered = 64 << 20

// tries is the number of requests for one answer.
const tries = 4

// A Server is a reader's server. Only URL must be set.
type Server struct {
	URL       string // the base of all addresses
	Header    http.Header
	Transport http.RoundTripper // nil means the default
	UserAgent string            // "" means the library's
	Pause     time.Duration     // before the first repetition; zero means a second
}

// An Error is an unsuccessful answer.
type Error struct {
	URL    string // without its query
	Status int
	Text   string        // the beginning of the answer
	After  time.Duration // how long the server asks to be left alone
}

// IsLogin reports whether the server rejects the credentials.
func (e *Error) IsLogin() bool {
	return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden
}

// Error is the server's answer, with advice.
func (e *Error) Error() string {
	text := fmt.Sprintf("%s: %d %s", e.URL, e.Status, http.StatusText(e.Status))
	switch {
	case e.IsLogin():
		text += ": the reader rejected the credentials: check --user, --token-env, --header or --netrc"
	case e.Text != "":
		text += ": " + e.Text
	}
	return text
}

// Get requests a path below URL, and decodes the answer, which is JSON.
func (s *Server) Get(ctx context.Context, path string, query url.Values, answer any) error {
	return s.call(ctx, http.MethodGet, path, query, nil, answer)
}

// Post sends a form. An answer of type *string is text.
func (s *Server) Post(ctx context.Context, path string, query, form url.Values, answer any) error {
	return s.call(ctx, http.MethodPost, path, query, form, answer)
}

func (s *Server) call(ctx context.Context, method, path string, query, form url.Values, answer any) error {
	address := strings.TrimSuffix(s.URL, "/") + "/" + path
	for try, wait := 1, cmp.Or(s.Pause, time.Second); ; try++ {
		body, err := s.once(ctx, method, address, query, form)
		if err == nil {
			return decode(address, body, answer)
		}
		failed, ok := errors.AsType[*Error](err)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		passing := !ok || failed.Status == http.StatusTooManyRequests || failed.Status >= 500 && failed.Status != http.StatusNotImplemented
		if ok && failed.After > wait {
			wait = failed.After
		}
		if !passing || try == tries || wait > 5*time.Minute {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
		wait *= 2
	}
}

func decode(address string, body []byte, answer any) error {
	if text, ok := answer.(*string); ok {
		*text = string(body)
		return nil
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("%s: this is not the answer of such a reader: %w", address, err)
	}
	return nil
}

// once sends one request. It follows no redirect: the credentials are for one address.
func (s *Server) once(ctx context.Context, method, address string, query, form url.Values) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	full := address
	if len(query) > 0 {
		full += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, full, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, err
	}
	for name, values := range s.Header {
		r.Header[name] = values
	}
	r.Header.Set("User-Agent", cmp.Or(s.UserAgent, "feedhistory/"+feedhistory.Version))
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	client := http.Client{Transport: s.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(r)
	if err != nil {
		if cause := errors.Unwrap(err); cause != nil {
			err = fmt.Errorf("%s: %w", address, cause) // without the query, which may have a secret
		}
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswered+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: the answer was cut short: %w", address, err)
	case len(body) > mostAnswered:
		return nil, fmt.Errorf("%s: the answer is larger than %d MiB", address, mostAnswered>>20)
	case resp.StatusCode/100 == 3:
		return nil, &Error{URL: address, Status: resp.StatusCode, Text: "it redirects to " + resp.Header.Get("Location") + ": give that address"}
	case resp.StatusCode != http.StatusOK:
		text := strings.TrimSpace(string(body[:min(len(body), 200)]))
		return nil, &Error{URL: address, Status: resp.StatusCode, Text: strings.ToValidUTF8(text, ""), After: feedhistory.NewStatusError(resp).RetryAfter}
	}
	return body, nil
}

// User returns the user and the password of the header; ok is false if it has none.
func (s *Server) User() (name, password string, ok bool) {
	encoded, ok := strings.CutPrefix(s.Header.Get("Authorization"), "Basic ")
	if !ok {
		return "", "", false
	}
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "", "", false
	}
	return strings.Cut(string(text), ":")
}

// Token returns the bearer token of the header; "" if there is none.
func (s *Server) Token() string {
	token, _ := strings.CutPrefix(s.Header.Get("Authorization"), "Bearer ")
	if token == s.Header.Get("Authorization") {
		return ""
	}
	return token
}
