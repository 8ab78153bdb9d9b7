package xmlscan

import "strings"

var (
	textEscaper = newEscaper("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#13;")
	attrEscaper = newEscaper("&", "&amp;", "<", "&lt;", ">", "&gt;", "\r", "&#13;",
		`"`, "&#34;", "\t", "&#9;", "\n", "&#10;")
)

// newEscaper returns a replacer that also removes the characters XML forbids.
func newEscaper(oldnew ...string) *strings.Replacer {
	for c := range ' ' {
		if c != '\t' && c != '\n' && c != '\r' {
			oldnew = append(oldnew, string(c), "")
		}
	}
	return strings.NewReplacer(append(oldnew, "\ufffe", "", "\uffff", "")...)
}

// WriteText writes characters as XML or HTML text.
func WriteText(b *strings.Builder, s string) {
	_, _ = textEscaper.WriteString(b, strings.ToValidUTF8(s, "\uFFFD"))
}

// WriteAttr writes an attribute, with the space before it.
func WriteAttr(b *strings.Builder, name, value string) {
	b.WriteString(" " + name + `="`)
	_, _ = attrEscaper.WriteString(b, strings.ToValidUTF8(value, "\uFFFD"))
	b.WriteByte('"')
}
