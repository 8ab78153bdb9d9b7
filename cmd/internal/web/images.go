package web

import (
	"net/http"
	"strings"
)

// imagesCookie makes a browser remember to show the images of a feed. It is sent only
// to the feed's pages. The server stores nothing.
const imagesCookie = "images"

// showsImages reports whether a visitor always wants to see the images of a
// feed.
func showsImages(r *http.Request) bool {
	_, err := r.Cookie(imagesCookie)
	return err == nil
}

// chooseImages makes the browser remember, or forget, to show the images of a
// feed. It changes nothing for others, so it needs no token.
func (s *Server) chooseImages(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.feedOf(r); err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	cookie := &http.Cookie{
		Name: imagesCookie, Value: "shown", Path: s.at("/feeds/" + r.PathValue("id")), MaxAge: 400 * 24 * 60 * 60,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: strings.HasPrefix(s.base(), "https:"),
	}
	if r.FormValue("show") != "always" {
		cookie.MaxAge = -1
	}
	http.SetCookie(w, cookie)
	http.Redirect(w, r, s.ownPath(r.FormValue("next")), http.StatusSeeOther)
	return nil
}
