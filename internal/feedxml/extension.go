package feedxml

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// An Extension is an element of another vocabulary for JSON. An element with child elements, or with
// attributes in a namespace, is in XML only.
type Extension struct {
	Name  string            `json:"name"`
	Space string            `json:"space,omitempty"`
	Value string            `json:"value,omitempty"`
	Attrs map[string]string `json:"attrs,omitempty"`
	XML   string            `json:"xml,omitempty"`
}

// ExtensionOf describes an element.
func ExtensionOf(element string) Extension {
	s := xmlscan.NewFragment(element, nil, xmlscan.Unlimited())
	if !s.Child(0) {
		return Extension{XML: element}
	}
	x := Extension{Name: s.Local(), Space: s.Space()}
	if prefix := cmp.Or(UsualPrefix(x.Space), s.Prefix()); prefix != "" {
		x.Name = prefix + ":" + s.Local()
	}
	whole := x.Space == ""
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

// Element returns the element with its namespace declarations.
func (x Extension) Element() (string, error) {
	if x.XML != "" {
		return x.XML, nil
	}
	if x.Name == "" || strings.ContainsAny(x.Name, " \t\r\n<>&/\"'=") || x.Space == "" {
		return "", fmt.Errorf("the extension %q needs a name and a namespace", x.Name)
	}
	var b strings.Builder
	attr := func(name, value string) { b.WriteString(" " + name + `="` + escapedXML(value) + `"`) }
	b.WriteString("<" + x.Name)
	declaration := "xmlns"
	if prefix, _, ok := strings.Cut(x.Name, ":"); ok && prefix != "" {
		declaration += ":" + prefix
	}
	attr(declaration, x.Space)
	for _, name := range slices.Sorted(maps.Keys(x.Attrs)) {
		if name == "" || name == "xmlns" || strings.ContainsAny(name, " \t\r\n<>&/\"'=:") {
			return "", errors.New("the extension " + x.Name + " has an attribute that needs xml: " + name)
		}
		attr(name, x.Attrs[name])
	}
	b.WriteByte('>')
	if escaped := escapedXML(x.Value); xmlscan.IsDense(len(x.Value), len(escaped)) {
		xmlscan.WriteText(&b, x.Value)
	} else {
		b.WriteString(escaped) // the form of earlier versions: in another one, the entry would count as edited
	}
	b.WriteString("</" + x.Name + ">")
	return b.String(), nil
}

// escapedXML escapes text as encoding/xml does.
func escapedXML(text string) string {
	return xmlEscapes.Replace(strings.Map(func(r rune) rune {
		if !xmlscan.IsChar(r) {
			return utf8.RuneError
		}
		return r
	}, text))
}

var xmlEscapes = strings.NewReplacer(`"`, "&#34;", "'", "&#39;", "&", "&amp;", "<", "&lt;", ">", "&gt;", "\t", "&#x9;", "\n", "&#xA;", "\r", "&#xD;")
