package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
)

const url = "https://example.org/feed.atom"

// feed returns a document with entries of these titles, to be polled each hour.
func feed(titles ...string) string {
	var b strings.Builder
	b.WriteString(`<feed xmlns="http://www.w3.org/2005/Atom" xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"><id>urn:f</id><title>F</title>` +
		`<updated>2026-01-01T00:00:00Z</updated><sy:updatePeriod>hourly</sy:updatePeriod>`)
	for _, title := range titles {
		b.WriteString(`<entry><id>urn:` + title + `</id><title>` + title + `</title><updated>2026-01-01T00:00:00Z</updated></entry>`)
	}
	return b.String() + `</feed>`
}

// A script is a double of the Client: each poll takes its next step.
type script []func() (*feedhistory.Reading, error)

func (s *script) Poll(ctx context.Context, url string, known feedhistory.Known) (*feedhistory.Reading, error) {
	if len(*s) == 0 {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	step := (*s)[0]
	*s = (*s)[1:]
	return step()
}

func TestFollowScript(t *testing.T) {
	document := func(titles ...string) func() (*feedhistory.Reading, error) {
		return func() (*feedhistory.Reading, error) {
			doc, err := feedhistory.Parse(strings.NewReader(feed(titles...)), url)
			return &feedhistory.Reading{URL: url, Document: doc}, err
		}
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 48*time.Hour)
		defer cancel()
		var out strings.Builder
		err := follow(ctx, &out, &script{
			document("One"),
			func() (*feedhistory.Reading, error) { return nil, errors.New("the network is down") },
			func() (*feedhistory.Reading, error) { return &feedhistory.Reading{Unchanged: true}, nil },
			document("Two", "One"),
		}, url)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, "One\nfailed: the network is down\nTwo\n", out.String())
	})
}

// A web is a double of the network: a Client with it does all it does with a real one.
type web func(r *http.Request) (status int, body string)

func (w web) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := w(r)
	return &http.Response{
		StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/atom+xml"}, "Etag": {`"1"`}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

func TestFollowWeb(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var polls []string
		// Any Transport but http's needs AllowPrivate: only http's can refuse private addresses.
		client := &feedhistory.Client{AllowPrivate: true, Transport: web(func(r *http.Request) (int, string) {
			polls = append(polls, time.Since(began).String()+" "+r.Header.Get("If-None-Match"))
			if r.Header.Get("If-None-Match") == `"1"` {
				return http.StatusNotModified, ""
			}
			return http.StatusOK, feed("One")
		})}
		defer client.CloseIdle()
		ctx, cancel := context.WithTimeout(t.Context(), 150*time.Minute)
		defer cancel()
		var out strings.Builder
		require.ErrorIs(t, follow(ctx, &out, client, url), context.DeadlineExceeded)
		require.Equal(t, "One\n", out.String())
		require.Equal(t, []string{"0s ", `1h0m0s "1"`, `2h0m0s "1"`}, polls)
	})
}
