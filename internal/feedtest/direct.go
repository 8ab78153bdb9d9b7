package feedtest

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
)

// Direct is an http.RoundTripper calling a handler, without a network. If the handler
// aborts, the body breaks off.
type Direct struct{ Handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (d Direct) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w, end := httptest.NewRecorder(), error(nil)
	func() {
		defer func() {
			if fault := recover(); fault == http.ErrAbortHandler {
				end = io.ErrUnexpectedEOF
			} else if fault != nil {
				panic(fault)
			}
		}()
		d.Handler.ServeHTTP(w, r)
	}()
	resp := w.Result()
	resp.Request = r
	if end != nil {
		resp.Body = io.NopCloser(io.MultiReader(bytes.NewReader(w.Body.Bytes()), broken{end}))
	}
	return resp, nil
}

// broken is the end of a truncated body.
type broken struct{ err error }

func (b broken) Read([]byte) (int, error) { return 0, b.err }
