package feedxml

import (
	"strings"

	ext "github.com/mmcdole/gofeed/extensions"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// extension reads the current element as an extension.
func (d *decoder) extension(all *ext.Extensions) {
	prefix, local := d.prefix(), d.r.Local()
	if *all == nil {
		*all = ext.Extensions{}
	}
	vocabulary := (*all)[prefix]
	if vocabulary == nil {
		vocabulary = map[string][]ext.Extension{}
		(*all)[prefix] = vocabulary
	}
	outer := ""
	if d.r.Format == Atom {
		outer = vocab.Atom
	}
	vocabulary[local] = append(vocabulary[local], d.element(outer))
}

// element reads the current element and its content. Around it, the default namespace
// is outer.
func (d *decoder) element(outer string) ext.Extension {
	s := d.r.Cursor
	e := ext.Extension{Name: s.Local(), Attrs: d.attributes(), Children: map[string][]ext.Extension{}}
	if space := d.r.Space(); s.Prefix() == "" && space != outer {
		e.Attrs["xmlns"], outer = space, space
	}
	var only string // the text, while it is in one piece
	var all []byte
	for depth := s.Depth(); d.err == nil; {
		tok := s.Next()
		if tok == xmlscan.Stop || tok == xmlscan.End && s.Depth() < depth {
			break
		}
		switch text, plain := s.Plain(); {
		case tok == xmlscan.Start:
			if local := s.Local(); d.count() {
				e.Children[local] = append(e.Children[local], d.element(outer))
			}
		case plain && only == "" && all == nil:
			only = text
		default:
			all = s.AppendText(append(all, only...))
			only = ""
		}
	}
	if all != nil {
		only = string(all)
	}
	e.Value = strings.TrimSpace(only)
	return e
}

// attributes returns the current element's attributes by their local names, with
// absolute references.
func (d *decoder) attributes() map[string]string {
	attrs := d.r.Attrs()
	m := make(map[string]string, len(attrs))
	for _, a := range attrs {
		value := a.Value()
		switch a.Local {
		case "href", "src", "uri", "url":
			value = iri.Resolve(d.r.Base(), value)
		case "base", "space":
			if a.Space == vocab.XML {
				continue
			}
		}
		m[a.Local] = value
	}
	return m
}

// prefix returns the key of the current element's vocabulary: its usual prefix, or
// else the document's, made unique within the entry; if there is no prefix, the
// namespace.
func (d *decoder) prefix() string {
	space, prefix := d.r.Space(), d.r.Prefix()
	if usual, ok := vocab.Prefix(space); ok {
		return usual
	}
	if prefix == "" {
		return space
	}
	for i := 0; i < len(d.prefixes); i++ {
		switch taken := d.prefixes[i]; {
		case taken.Prefix != prefix:
		case taken.URI == space:
			return prefix
		default:
			prefix += "-"
			i = -1
		}
	}
	if len(d.prefixes) == maxDecodedNamespaces {
		d.fail("namespaces", maxDecodedNamespaces)
		return prefix
	}
	d.prefixes = Add(d.prefixes, d.few[:], xmlscan.Binding{Prefix: prefix, URI: space})
	return prefix
}

// first returns the first of several values; "" if there is none.
func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// value returns the value of the first of several elements; "" if there is none.
func value(elements []ext.Extension) string {
	if len(elements) == 0 {
		return ""
	}
	return elements[0].Value
}
