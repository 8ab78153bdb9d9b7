package web

import (
	"net/http"
	"slices"
	"strings"
)

// looks are the choices of how pages look. A browser keeps all but the usual ones
// in a cookie, and they are classes of the page.
var looks = []lookChoice{
	{"letters", "Typeface", []choice{{Says: "Serif"}, {Key: "sans", Says: "Sans"}}},
	{"size", "Size", []choice{{Key: "small", Says: "Small"}, {Says: "Medium"}, {Key: "large", Says: "Large"}, {Key: "huge", Says: "Huge"}}},
	{"width", "Width", []choice{{Says: "Narrow"}, {Key: "wide", Says: "Wide"}}},
	{"theme", "Colours", []choice{{Says: "As the system"}, {Key: "light", Says: "Light"}, {Key: "dark", Says: "Dark"}}},
}

// A lookChoice is a group of choices in the form.
type lookChoice struct {
	Name, Says string
	Choices    []choice
}

const lookCookie = "look"

// Chosen returns the key of the group's choice among some keys; "" for the usual one.
func (g lookChoice) Chosen(keys []string) (key string) {
	for _, c := range g.Choices {
		if c.Key != "" && slices.Contains(keys, c.Key) {
			key = c.Key
		}
	}
	return key
}

// classesOf returns the classes of a page, without unknown keys.
func classesOf(keys []string) (classes []string) {
	for _, group := range looks {
		if key := group.Chosen(keys); key != "" {
			classes = append(classes, key)
		}
	}
	return classes
}

// lookOf returns the classes kept by a visitor's browser.
func lookOf(r *http.Request) []string {
	cookie, err := r.Cookie(lookCookie)
	if err != nil {
		return nil
	}
	return classesOf(strings.Split(cookie.Value, "."))
}

// chooseLook makes the browser keep a look. It changes nothing for others, so it needs no
// token.
func (s *Server) chooseLook(w http.ResponseWriter, r *http.Request) error {
	var chosen []string
	for _, group := range looks {
		chosen = append(chosen, r.FormValue(group.Name))
	}
	s.keepChoice(w, lookCookie, strings.Join(classesOf(chosen), "."), s.root)
	return seeOther(s.ownPath(r.FormValue("next")))
}
