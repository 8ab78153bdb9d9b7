package readertest

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"time"
)

func (m *Miniflux) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/version", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, map[string]string{"version": m.Version})
	})
	mux.HandleFunc("GET /v1/feeds", func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, m.feeds) })
	mux.HandleFunc("GET /v1/feeds/{feed}", func(w http.ResponseWriter, r *http.Request) {
		m.withFeed(w, r, func(f *feed) { answer(w, http.StatusOK, f) })
	})
	mux.HandleFunc("PUT /v1/feeds/{feed}", m.change)
	mux.HandleFunc("PUT /v1/feeds/{feed}/refresh", m.refresh)
	mux.HandleFunc("PUT /v1/entries/{entry}/bookmark", m.bookmark)
	mux.HandleFunc("GET /v1/feeds/{feed}/entries", m.list)
	mux.HandleFunc("GET /v1/entries/{entry}", m.entry)
	mux.HandleFunc("PUT /v1/entries", m.setStatus)
	if m.Version >= "2.2.16" {
		mux.HandleFunc("POST /v1/feeds/{feed}/entries/import", m.importEntry)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.mu.Lock()
		m.requests++
		var fault *Fault
		if m.Fault != nil {
			fault = m.Fault(m.requests, r)
		}
		m.mu.Unlock()
		m.serve(w, r, mux, fault)
	})
}

func (m *Miniflux) serve(w http.ResponseWriter, r *http.Request, mux http.Handler, fault *Fault) {
	body, _ := io.ReadAll(r.Body) // only after this does the server notice the client's leaving
	r.Body = io.NopCloser(bytes.NewReader(body))
	if fault != nil {
		select {
		case <-time.After(fault.Wait):
		case <-r.Context().Done():
			return
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case r.Header.Get("X-Auth-Token") != m.Token:
		refuse(w, http.StatusUnauthorized, "access unauthorized")
	case fault == nil || fault.Wait > 0 && fault.Status == 0:
		mux.ServeHTTP(w, r)
	default:
		if fault.Late {
			mux.ServeHTTP(httptest.NewRecorder(), r)
		}
		if fault.Status == 0 {
			panic(http.ErrAbortHandler)
		}
		if fault.RetryAfter != "" {
			w.Header().Set("Retry-After", fault.RetryAfter)
		}
		refuse(w, fault.Status, fault.Message)
	}
}

func answer(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value)
}

func refuse(w http.ResponseWriter, status int, message string) {
	answer(w, status, map[string]string{"error_message": message})
}

func number(text string) int64 {
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
