package web

import (
	"net/http"
	"strings"
)

// imagesCookie is how a browser remembers that images of a feed are to be shown:
// it is sent to that feed's pages only. The server knows nothing of it.
const imagesCookie = "images"

// showsImages reports whether a visitor has images of a feed shown always.
func showsImages(r *http.Request) bool {
	_, err := r.Cookie(imagesCookie)
	return err == nil
}

// chooseImages has the browser remember, or forget, that images of a feed are to
// be shown. It changes nothing for others, and so it needs no token.
func (s *Server) chooseImages(w http.ResponseWriter, r *http.Request) error {
	if _, err := s.feedOf(r); err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	cookie := &http.Cookie{
		Name: imagesCookie, Value: "shown", Path: "/feeds/" + r.PathValue("id"), MaxAge: 400 * 24 * 60 * 60,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: strings.HasPrefix(s.base(), "https:"),
	}
	if r.FormValue("show") != "always" {
		cookie.MaxAge = -1
	}
	http.SetCookie(w, cookie)
	http.Redirect(w, r, ownPath(r.FormValue("next")), http.StatusSeeOther)
	return nil
}
