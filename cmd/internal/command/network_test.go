package command_test

import (
	"log/slog"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// A host is waited for until its answer is complete, with or without a body.
func TestWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := make(chan struct{})
		transport := feedtest.Pipe(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.URL.Path == "/slow":
				<-slow
			case r.Header.Get("If-None-Match") != "":
				w.WriteHeader(http.StatusNotModified)
				return
			}
			w.Header().Set("ETag", `"1"`)
			_, _ = w.Write([]byte(`<feed xmlns="http://www.w3.org/2005/Atom"/>`))
		}))
		traffic := new(command.Traffic)
		client := &feedhistory.Client{AllowPrivate: true, Transport: transport, Logger: slog.New(traffic)}
		defer client.CloseIdle()
		doc, err := client.Get(t.Context(), "http://first.example/")
		require.NoError(t, err)
		again, err := client.Poll(t.Context(), "http://first.example/", doc.Known())
		require.NoError(t, err)
		require.True(t, again.Unchanged)
		_, err = client.HTTPClient().Head("http://first.example/")
		require.NoError(t, err)
		time.Sleep(3 * time.Second)
		require.Empty(t, traffic.Waiting())
		go func() { _, _ = client.Get(t.Context(), "http://second.example/slow") }()
		time.Sleep(3 * time.Second)
		require.Equal(t, "second.example", traffic.Waiting())
		close(slow)
		synctest.Wait()
		require.Empty(t, traffic.Waiting())
	})
}
