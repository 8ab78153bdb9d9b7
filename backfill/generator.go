package backfill

import (
	"slices"
	"strconv"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A head has the statements of an XML feed's head section that have no field in a
// Document.
type head struct {
	generator  string   // the text of the element and its uri attribute; "" if there is none
	total      int      // openSearch:totalResults; zero if there is none
	namespaces []string // declared by the root element
}

// The namespaces of OpenSearch, of which Blogger uses the older one.
var openSearch = []string{"http://a9.com/-/spec/opensearch/1.1/", "http://a9.com/-/spec/opensearchrss/1.0/"}

// readHead reads the head section of a document up to its first entry.
func readHead(doc *feedhistory.Document) (h head) {
	if doc.Format == feedhistory.JSONFeed {
		return h
	}
	s := xmlscan.New(doc.Text(), xmlscan.Limits{})
	if !s.Child(0) {
		return h
	}
	for _, b := range s.Bindings() {
		h.namespaces = append(h.namespaces, b.URI)
	}
	for token := s.Next(); token != xmlscan.Stop; token = s.Next() {
		if token != xmlscan.Start {
			continue
		}
		switch local := s.Local(); {
		case local == "channel":
		case local == "entry" || local == "item":
			return h
		case local == "generator":
			uri, _ := s.Attr("", "uri")
			h.generator = strings.TrimSpace(strings.TrimSpace(s.ElementText()) + " " + uri)
		case local == "totalResults" && slices.Contains(openSearch, s.Space()):
			h.total, _ = strconv.Atoi(strings.TrimSpace(s.ElementText()))
		default:
			s.Skip()
		}
	}
	return h
}
