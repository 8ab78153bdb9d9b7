package suite_test

import (
	"bytes"
	"cmp"
	"encoding/xml"
	"errors"
	"io"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/html/charset"
)

// xml reads a well-formed document.
func (d *strictDoc) xml(body []byte) error {
	decoder := xml.NewDecoder(bytes.NewReader(body))
	decoder.CharsetReader = charset.NewReaderLabel
	r := &strictXML{strictDoc: d, bases: []string{d.url}}
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case xml.StartElement:
			r.text = ""
			if err := r.start(t); err != nil {
				return err
			}
		case xml.CharData:
			r.text += string(t)
		case xml.EndElement:
			r.end(t.Name.Local, strings.TrimSpace(r.text))
			r.text = ""
		}
	}
	if !r.root {
		return errors.New("empty")
	}
	for i := range d.entries {
		d.entries[i].doc = d.updated
	}
	return nil
}

// A strictXML is a document being read.
type strictXML struct {
	*strictDoc
	path, bases []string
	entry       *strictEntry
	text        string
	root        bool
}

func (r *strictXML) start(t xml.StartElement) error {
	base, attr := r.bases[len(r.bases)-1], map[string]string{}
	for _, a := range t.Attr {
		attr[a.Name.Local] = a.Value
		if a.Name.Space != spaceXML || a.Name.Local != "base" {
			continue
		}
		if b, err := url.Parse(base); err == nil {
			if u, err := b.Parse(a.Value); err == nil {
				base = u.String()
			}
		}
	}
	r.path, r.bases, r.root = append(r.path, t.Name.Local), append(r.bases, base), true
	depth, name := len(r.path), t.Name
	head := depth == 2 && r.path[0] == "feed" || depth == 3 && r.path[1] == "channel"
	switch {
	case depth > 256:
		return errors.New("too deep")
	case depth == 1 && name.Local != "feed" && name.Local != "rss" && name.Local != "RDF":
		return errors.New("no feed")
	case name.Local == "entry" && depth == 2, name.Local == "item" && (depth == 2 || depth == 3):
		r.entry = &strictEntry{id: attr["about"]}
	case name.Space == spaceFH && head:
		r.complete = r.complete || name.Local == "complete"
		r.archive = r.archive || name.Local == "archive"
	case name.Space == spaceAtom && name.Local == "link" && head:
		r.link(cmp.Or(attr["rel"], "alternate"), attr["href"], base)
	case name.Space == spaceAT && name.Local == "deleted-entry":
		if when, _ := time.Parse(time.RFC3339, attr["when"]); !when.Before(r.deleted[attr["ref"]]) {
			r.deleted[attr["ref"]] = when
		}
	}
	return nil
}

func (r *strictXML) end(name, value string) {
	depth := len(r.path)
	inEntry := r.entry != nil && depth > 1 && (r.path[depth-2] == "entry" || r.path[depth-2] == "item")
	r.path, r.bases = r.path[:depth-1], r.bases[:depth]
	switch name {
	case "id", "guid":
		if inEntry {
			r.entry.id = value
		}
	case "title":
		if inEntry {
			r.entry.title = value
		}
	case "updated", "lastBuildDate":
		at, err := time.Parse(time.RFC3339, value)
		if err != nil {
			at, _ = time.Parse(time.RFC1123, value)
		}
		if inEntry {
			r.entry.updated = at
		} else if depth <= 3 && r.entry == nil {
			r.updated = at
		}
	case "entry", "item":
		if r.entry != nil && depth <= 3 {
			r.entries, r.entry = append(r.entries, *r.entry), nil
		}
	}
}
