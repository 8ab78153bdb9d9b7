package handover

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

// A result is the outcome of a call.
type result struct {
	status int
	tries  int // the number of requests
	body   []byte
}

// call sends a request to the reader, and repeats it if it may succeed another
// time: all requests here may be repeated.
func (m *Miniflux) call(ctx context.Context, method, path string, query url.Values, body, answer any) (*result, error) {
	address, err := m.address(path, query)
	if err != nil {
		return nil, err
	}
	var sent []byte
	if body != nil {
		if sent, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	wait := cmp.Or(m.Retry.Base, time.Second)
	for try := 1; ; try++ {
		got, err := m.once(ctx, method, address, sent)
		if err == nil {
			got.tries = try
			return got, decode(address, got.body, answer)
		}
		pause, again := m.again(ctx, err, wait)
		if !again || try >= cmp.Or(m.Retry.Tries, 3) {
			return nil, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		wait *= 2
	}
}

func decode(address string, body []byte, answer any) error {
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(body, answer); err != nil {
		return fmt.Errorf("%s: this is not an answer of Miniflux: %w", address, err)
	}
	return nil
}

// again reports whether to repeat a failed request, and how long to wait.
func (m *Miniflux) again(ctx context.Context, err error, wait time.Duration) (time.Duration, bool) {
	if ctx.Err() != nil {
		return 0, false
	}
	answer, ok := errors.AsType[*ReaderError](err)
	switch {
	case !ok:
		return wait, true // a network error
	case answer.RetryAfter > 0:
		return answer.RetryAfter, answer.RetryAfter <= cmp.Or(m.Retry.MaxWait, 30*time.Second)
	}
	return wait, answer.Status == http.StatusTooManyRequests || answer.Status >= 500 && answer.Status != http.StatusNotImplemented
}

// once sends one request.
func (m *Miniflux) once(ctx context.Context, method, address string, body []byte) (*result, error) {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(m.Timeout, time.Minute))
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("User-Agent", cmp.Or(m.UserAgent, "feedhistory/"+feedhistory.Version))
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	if m.Token != "" {
		r.Header.Set("X-Auth-Token", m.Token)
	} else {
		r.SetBasicAuth(m.User, m.Password)
	}
	resp, err := m.client().Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswered+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: the answer was cut short: %w", address, err)
	case len(data) > mostAnswered:
		return nil, fmt.Errorf("%s: the answer is larger than %d MiB", address, mostAnswered>>20)
	case resp.StatusCode/100 != 2:
		return nil, refusal(address, resp, data)
	}
	return &result{status: resp.StatusCode, body: data}, nil
}

func refusal(address string, resp *http.Response, body []byte) *ReaderError {
	e := &ReaderError{URL: address, Status: resp.StatusCode}
	var answer struct {
		Message string `json:"error_message"`
	}
	if json.Unmarshal(body, &answer) == nil {
		e.Message = answer.Message
	}
	if to := resp.Header.Get("Location"); e.Message == "" && to != "" {
		e.Message = "it redirects to " + to + ", where the credentials are not sent"
	}
	e.RetryAfter = feedhistory.NewStatusError(resp).RetryAfter
	return e
}

// client returns a client that does not follow redirects, because credentials
// are for one address.
func (m *Miniflux) client() *http.Client {
	c := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	if m.HTTP != nil {
		c.Transport = m.HTTP.Transport
	}
	if c.Transport == nil {
		if m.transport == nil {
			m.transport = &http.Transport{ForceAttemptHTTP2: true}
		}
		c.Transport = m.transport
	}
	return c
}

// CloseIdle closes the unused connections.
func (m *Miniflux) CloseIdle() { m.client().CloseIdleConnections() }

// address returns the URL of a request.
func (m *Miniflux) address(path string, query url.Values) (string, error) {
	u, err := url.Parse(m.URL)
	switch {
	case err != nil:
		return "", errors.New("the reader's address is not a URL")
	case u.User != nil:
		return "", errors.New("the reader's address contains a user: give credentials separately")
	case !isWeb(m.URL) || u.Host == "":
		return "", fmt.Errorf("%s is not the address of a reader: it begins with https:// or http://", m.URL)
	}
	u.RawQuery, u.Fragment = query.Encode(), ""
	base := strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/v1")
	u.Path, u.RawPath = base+"/v1/"+path, ""
	return u.String(), nil
}
