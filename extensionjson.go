package feedhistory

import (
	"cmp"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// An Extension is an element of another vocabulary, such as iTunes or
// Media RSS. An element with child elements, or with attributes in a namespace,
// is in XML only.
type Extension struct {
	Name  string            `json:"name"`            // the name with the vocabulary's usual prefix: "itunes:duration"
	Space string            `json:"space,omitempty"` // the namespace of the vocabulary
	Value string            `json:"value,omitempty"`
	Attrs map[string]string `json:"attrs,omitempty"`
	XML   string            `json:"xml,omitempty"` // the element itself, which takes precedence
}

// extensionOf describes an element.
func extensionOf(element string) Extension {
	s := xmlscan.NewFragment(element, nil, xmlscan.Unlimited())
	if !s.Child(0) {
		return Extension{XML: element}
	}
	x := Extension{Name: s.Local(), Space: s.Space()}
	if prefix := cmp.Or(vocab.UsualPrefix(x.Space), s.Prefix()); prefix != "" {
		x.Name = prefix + ":" + s.Local()
	}
	whole := false
	for _, a := range s.Attrs() {
		if whole = whole || a.Space != ""; a.Space == "" {
			if x.Attrs == nil {
				x.Attrs = map[string]string{}
			}
			x.Attrs[a.Local] = a.Value()
		}
	}
	x.Value = s.ElementText()
	if whole || s.Nested() {
		x.Value, x.Attrs, x.XML = "", nil, element
	}
	return x
}

// element returns the element with its namespace declarations.
func (x Extension) element() (string, error) {
	if x.XML != "" {
		return x.XML, nil
	}
	prefix, local, ok := strings.Cut(x.Name, ":")
	if !ok {
		prefix, local = "", x.Name
	}
	if x.Name == "" || strings.ContainsAny(x.Name, " \t\r\n<>&/\"'=") || x.Space == "" {
		return "", fmt.Errorf("the extension %q needs a name and a namespace", x.Name)
	}
	var b strings.Builder
	attr := func(name, value string) { b.WriteString(" " + name + `="` + escapedXML(value) + `"`) }
	b.WriteString("<" + x.Name)
	if prefix != "" {
		attr("xmlns:"+prefix, x.Space)
	} else {
		attr("xmlns", x.Space)
	}
	for _, name := range slices.Sorted(maps.Keys(x.Attrs)) {
		if name == "" || name == "xmlns" || strings.ContainsAny(name, " \t\r\n<>&/\"'=:") {
			return "", errors.New("the extension " + local + " has an attribute that needs xml: " + name)
		}
		attr(name, x.Attrs[name])
	}
	b.WriteString(">" + escapedXML(x.Value) + "</" + x.Name + ">")
	return b.String(), nil
}

func escapedXML(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // writing to a Builder does not fail
	return b.String()
}
