package web

import (
	"bytes"
	"cmp"
	"net/http"
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/opml"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// exportOPML answers with all feeds as OPML: the feeds themselves; with ?mirrored, the
// feeds this server publishes; or with ?feed=complete, their documents for readers that
// follow no archives.
func (s *Server) exportOPML(w http.ResponseWriter, r *http.Request) error {
	document, q := "", r.URL.Query()
	switch {
	case q.Get("feed") == "complete":
		document = "/complete.atom"
	case q.Has("feed"):
		return &problem{http.StatusBadRequest, "This address is not valid: feed=" + q.Get("feed"), "There is feed=complete."}
	case q.Has("mirrored"):
		document = "/index.atom"
	}
	var outlines []opml.Outline
	changed := time.Unix(0, 0)
	for feed, err := range s.store.Feeds(r.Context(), mirror.FeedQuery{}) {
		if err != nil {
			return err
		}
		o := opml.OutlineOf(feed, republish.Title(feed), republish.Site(feed))
		if document != "" {
			name, err := s.published.Name(r.Context(), feed.URL)
			if err != nil {
				return err
			}
			o.URL = s.base() + "feeds/" + name + document
		}
		if feed.Changed.After(changed) {
			changed = feed.Changed
		}
		outlines = append(outlines, o)
	}
	var b bytes.Buffer
	list, err := opml.NewWriter(&b, changed) // a time changing only with the feeds
	for _, o := range outlines {
		err = cmp.Or(err, list.Add(o))
	}
	if err = cmp.Or(err, list.Close()); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "text/x-opml; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="feeds.opml"`)
	h.Set("Cache-Control", "no-cache")
	republish.NewBody(b.Bytes()).Serve(w, r, http.StatusOK)
	return nil
}
