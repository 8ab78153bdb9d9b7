package replication

import (
	"fmt"
	"mime"
	"net/http"
	"net/textproto"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// The header fields of pages and entities.
const (
	FieldType      = "Content-Type"
	FieldModified  = "Last-Modified"
	FieldID        = "Content-Id" // in the form of net/textproto
	FieldOperation = "Operation-Type"
	FieldLink      = "Link"
)

// ParseTime reads the stamp in a Last-Modified leniently: a day may have one
// digit, a year two, and the zone may be UTC or an offset.
func ParseTime(s string) (time.Time, error) {
	s = strings.TrimSpace(s)
	if t, err := http.ParseTime(s); err == nil {
		return t.UTC(), nil
	}
	for _, layout := range [...]string{
		"Mon, 2 Jan 2006 15:04:05 MST",
		"Mon, 2 Jan 2006 15:04:05 -0700",
		"2 Jan 2006 15:04:05 MST",
		"2 Jan 2006 15:04:05 -0700",
		time.RFC3339,
	} {
		if t, err := time.Parse(layout, s); err == nil && known(t) {
			return t.UTC().Truncate(time.Second), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time", Clip(s))
}

// known reports whether the zone means the same everywhere. time.Parse silently
// treats any other abbreviation as UTC.
func known(t time.Time) bool {
	name, offset := t.Zone()
	return offset != 0 || name == "" || name == "UTC" || name == "GMT" || name == "Z"
}

// mostBoundary is the maximum length of a boundary; RFC 2046 allows 70.
const mostBoundary = 200

// Boundary returns the boundary of a multipart type with any subtype. It also
// reads boundaries that lack the required quotes, or have typographic ones.
func Boundary(contentType string) (string, error) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind, params = lenientType(contentType)
	}
	b := params["boundary"]
	switch {
	case !strings.HasPrefix(strings.ToLower(kind), "multipart/"):
		return "", fmt.Errorf("the media type %q is not multipart", Clip(contentType))
	case b == "":
		return "", fmt.Errorf("the media type %q has no boundary", Clip(contentType))
	case len(b) > mostBoundary:
		return "", fmt.Errorf("the boundary has %d bytes; the maximum is %d", len(b), mostBoundary)
	case strings.ContainsAny(b, "\r\n"):
		return "", fmt.Errorf("the boundary %q has line breaks", Clip(b))
	}
	return b, nil
}

func lenientType(s string) (kind string, params map[string]string) {
	kind, rest, _ := strings.Cut(s, ";")
	params = map[string]string{}
	for rest != "" {
		var name, value string
		name, rest, _ = strings.Cut(rest, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		value, rest = lenientValue(strings.TrimLeft(rest, " \t"))
		if _, again := params[name]; !again {
			params[name] = value
		}
	}
	return strings.TrimSpace(kind), params
}

// lenientValue reads a parameter's value up to the next semicolon.
func lenientValue(s string) (value, rest string) {
	for _, quotes := range [...][2]string{{`"`, `"`}, {"“", "”"}} {
		if inner, ok := strings.CutPrefix(s, quotes[0]); ok {
			if value, rest, ok = strings.Cut(inner, quotes[1]); ok {
				_, rest, _ = strings.Cut(rest, ";")
				return value, rest
			}
		}
	}
	value, rest, _ = strings.Cut(s, ";")
	return strings.Trim(value, " \t\"“”"), rest
}

// Links returns the targets of the links in a header by relation, the first one
// of each. A line may have several links, a relation may be a list, and a
// target may lack its angle brackets.
func Links(h http.Header) map[string]string {
	const most = 1000
	links := map[string]string{}
	n := 0
	for _, line := range h.Values(FieldLink) {
		for ; n < most; n++ {
			var target string
			var params map[string]string
			if target, params, line = iri.CutLink(bracketed(line)); params == nil {
				break
			}
			for rel := range strings.FieldsSeq(params["rel"]) {
				if _, again := links[rel]; !again {
					links[rel] = strings.TrimSpace(target)
				}
			}
		}
	}
	return links
}

// bracketed adds the missing angle brackets to the first target of a line.
func bracketed(line string) string {
	line = strings.TrimLeft(line, " \t,")
	if i := strings.IndexByte(line, ';'); i >= 0 && line[0] != '<' {
		return "<" + strings.TrimSpace(line[:i]) + ">" + line[i:]
	}
	return line
}

// Operation returns the operation in an entity's header: PUT, DELETE or PATCH;
// any other word unchanged, in capitals; "" if there is none.
func Operation(h textproto.MIMEHeader) string {
	s := strings.TrimSpace(h.Get(FieldOperation))
	if name, value, ok := strings.Cut(s, "="); ok && strings.EqualFold(strings.TrimSpace(name), "http-equiv") {
		s = value
	}
	return strings.ToUpper(strings.Trim(s, "\" \t"))
}

// Clip shortens foreign text for a message.
func Clip(s string) string { return xmlscan.Clip(s, 200) }
