package web

import (
	"errors"
	"net/http"
	"strings"

	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// A movedError says a page is at another path of this server.
type movedError struct {
	path    string
	forGood bool
}

// Error says where it is.
func (m *movedError) Error() string { return "moved to " + m.path }

// feedOf returns the feed whose page a request is for.
func (s *Server) feedOf(r *http.Request) (*mirror.Feed, error) {
	asked := r.PathValue("id")
	feed, err := s.published.Feed(r.Context(), asked)
	if err != nil {
		if other := s.feeds.successor(asked); other != "" && errors.Is(err, mirror.ErrNotFound) && r.Method != http.MethodPost {
			return nil, &movedError{s.at("/feeds/" + other + "?said=leads"), false}
		}
		return nil, err
	}
	name := republish.Name(feed.URL)
	if asked == name && !strings.HasSuffix(r.URL.Path, "/") {
		return feed, nil
	}
	u := *r.URL
	u.Path, u.RawPath = s.at("/feeds/"+name+strings.TrimSuffix(strings.TrimPrefix(u.Path, "/feeds/"+asked), "/")), ""
	return nil, &movedError{u.RequestURI(), true}
}
