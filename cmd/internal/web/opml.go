package web

import (
	"cmp"
	"net/http"
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/opml"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// exportOPML answers with all feeds as OPML: the feeds themselves or, with
// ?mirrored, the feeds that this server publishes.
func (s *Server) exportOPML(w http.ResponseWriter, r *http.Request) error {
	mirrored := r.URL.Query().Has("mirrored")
	w.Header().Set("Content-Type", "text/x-opml; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="feeds.opml"`)
	list, err := opml.NewWriter(w, time.Now())
	for feed, failed := range s.store.Feeds(r.Context(), mirror.FeedQuery{}) {
		if err = cmp.Or(err, failed); err != nil {
			break
		}
		o := opml.Outline{Text: republish.Title(feed), URL: cmp.Or(feed.Address, feed.URL), Site: republish.Site(feed)}
		if mirrored {
			var name string
			if name, err = s.published.Name(r.Context(), feed.URL); err != nil {
				break
			}
			o.URL = s.base() + "feeds/" + name + "/index.atom"
		}
		err = list.Add(o)
	}
	if err = cmp.Or(err, list.Close()); err != nil {
		s.Logger.ErrorContext(r.Context(), "a list of feeds was cut short", "err", err)
		panic(http.ErrAbortHandler)
	}
	return nil
}
