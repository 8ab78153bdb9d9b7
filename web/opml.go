package web

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"golang.org/x/net/html/charset"

	"github.com/feedhistory/feedhistory/mirror"
)

// mostOutlines bounds how many feeds an OPML file may add.
const mostOutlines = 10_000

var errNoOPML = errors.New("it has no opml element")

// readOPML returns the addresses of the feeds in an OPML file, each once,
// however they are nested.
func readOPML(r io.Reader) (urls []string, err error) {
	d := xml.NewDecoder(r)
	d.Strict, d.Entity, d.CharsetReader = false, xml.HTMLEntity, charset.NewReaderLabel
	found := false
	seen := map[string]bool{}
	for {
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			if !found {
				err = errNoOPML
			} else {
				err = nil
			}
			return urls, err
		}
		if err != nil {
			return nil, err
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		found = found || start.Name.Local == "opml"
		if !found || start.Name.Local != "outline" {
			continue
		}
		i := slices.IndexFunc(start.Attr, func(a xml.Attr) bool { return a.Name.Local == "xmlUrl" || a.Name.Local == "xmlurl" })
		if i < 0 || seen[start.Attr[i].Value] {
			continue
		}
		if len(urls) == mostOutlines {
			return nil, fmt.Errorf("it has more than %d feeds", mostOutlines)
		}
		seen[start.Attr[i].Value] = true
		urls = append(urls, start.Attr[i].Value)
	}
}

// An opml is what the feeds are exported as (OPML 2.0).
type opml struct {
	XMLName  xml.Name  `xml:"opml"`
	Version  string    `xml:"version,attr"`
	Title    string    `xml:"head>title"`
	Created  string    `xml:"head>dateCreated"`
	Outlines []outline `xml:"body>outline"`
}

type outline struct {
	Type    string `xml:"type,attr"`
	Text    string `xml:"text,attr"`
	Title   string `xml:"title,attr"`
	XMLURL  string `xml:"xmlUrl,attr"`
	HTMLURL string `xml:"htmlUrl,attr,omitempty"`
}

// exportOPML answers with all feeds as OPML: the feeds themselves or, with
// ?mirrored, what this server publishes of them.
func (s *Server) exportOPML(w http.ResponseWriter, r *http.Request) error {
	mirrored := r.URL.Query().Has("mirrored")
	list := opml{Version: "2.0", Title: "Feeds", Created: time.Now().UTC().Format(time.RFC1123Z)}
	for feed, err := range s.Store.Feeds(r.Context(), mirror.FeedQuery{}) {
		if err != nil {
			return err
		}
		o := outline{Type: "rss", Text: titleOf(feed), Title: titleOf(feed), XMLURL: cmp.Or(feed.Address, feed.URL), HTMLURL: siteOf(feed)}
		if mirrored {
			o.XMLURL = s.base() + "feeds/" + ShortName(feed.URL) + "/index.atom"
		}
		list.Outlines = append(list.Outlines, o)
	}
	text, err := xml.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/x-opml; charset=utf-8")
	w.Header().Set("Content-Disposition", `attachment; filename="feeds.opml"`)
	_, _ = io.WriteString(w, xml.Header+string(text)+"\n")
	return nil
}
