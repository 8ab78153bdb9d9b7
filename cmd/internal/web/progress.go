package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
)

// A progress says how far a poll has come, for events.
type progress struct {
	Text string `json:"text"`
	Done bool   `json:"done"`
}

// progressOf returns how far a poll of a feed has come.
func progressOf(feed *mirror.Feed, waits, runs bool) progress {
	switch {
	case !waits && !runs:
		return progress{"Done.", true}
	case waits:
		return progress{Text: "Waiting for its turn …"}
	case feed.Known.URL == "":
		return progress{Text: "Asking for the feed …"}
	}
	text := "Reading: " + plural(feed.Documents+1, "document", "documents") + ", " +
		plural(feed.Entries, "entry", "entries") + " so far"
	if n := len(feed.Pending); n > 0 {
		text += ", " + plural(n, "document", "documents") + " known to follow"
	}
	return progress{Text: text + "."}
}

const (
	watchEvery = 250 * time.Millisecond
	aliveEvery = 15 * time.Second // no proxy may consider the stream dead
)

// tell answers once with the progress of a poll.
func tell(w http.ResponseWriter, polls *mirror.Poller, feed *mirror.Feed) error {
	waits, runs := polls.Status(feed.URL)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	return json.NewEncoder(w).Encode(progressOf(feed, waits, runs))
}

// watch sends the progress of a poll as server-sent events until the poll ends;
// with ?now, only once.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) error {
	feed, err := s.feedOf(r)
	if err != nil {
		return err
	}
	if r.URL.Query().Has("now") {
		return tell(w, s.polls, feed)
	}
	leave, ok := s.streams.enter(r)
	if !ok {
		return &problem{http.StatusServiceUnavailable, "Too many pages are watching", "Load the page again to see how far the poll is."}
	}
	defer leave()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no")
	stream := http.NewResponseController(w)
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	var last progress
	for said := time.Now(); ; {
		waits, runs := s.polls.Status(feed.URL)
		now, err := s.store.Feed(r.Context(), feed.URL)
		p := progress{"The feed has been removed.", true}
		if err == nil {
			p = progressOf(now, waits, runs)
		} else if !errors.Is(err, mirror.ErrNotFound) && !errors.Is(err, context.Canceled) {
			s.Logger.ErrorContext(r.Context(), "a feed cannot be read", "feed", feed.URL, "err", err)
		}
		switch {
		case p != last:
			data, _ := json.Marshal(p)
			_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
		case time.Since(said) > aliveEvery:
			_, _ = fmt.Fprint(w, ":\n\n")
		}
		if p != last || time.Since(said) > aliveEvery {
			said, last = time.Now(), p
			_ = stream.SetWriteDeadline(time.Now().Add(2 * aliveEvery))
			if err := stream.Flush(); err != nil {
				return nil // the client has gone
			}
		}
		if p.Done {
			return nil
		}
		select {
		case <-r.Context().Done():
			return nil
		case <-tick.C:
		}
	}
}
