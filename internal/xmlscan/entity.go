package xmlscan

import "strings"

// The entities a document declares itself.
const (
	maxEntities = 256
	maxEntity   = 4 << 10 // the length of one, with the entities in it
)

// Expand replaces the references to the entities a document declares in its DOCTYPE, as
// XML does: the scanner then reads their text as part of the document. A declaration
// overrides an entity of HTML, but none of XML's five. Parameter entities and external ones
// are unknown.
//
// The result has at most twice the document's length: a document about to become longer
// is returned unchanged, and so is one without declarations.
func Expand(doc string) string {
	subset, from := internalSubset(doc)
	if subset == "" {
		return doc
	}
	x := expander{values: map[string]string{}, open: map[string]bool{}}
	x.declare(subset)
	if len(x.values) == 0 {
		return doc
	}
	var b strings.Builder
	b.WriteString(doc[:from])
	if !x.document(&b, doc[from:], 2*len(doc)) {
		return doc
	}
	return b.String()
}

// internalSubset returns the part of a DOCTYPE with declarations, and where the DOCTYPE
// ends; "" if there is none.
func internalSubset(doc string) (subset string, end int) {
	for i := 0; ; {
		switch i = skipSpace(doc, i); {
		case hasPrefixAt(doc, i, "<?"):
			i = lastOf(doc, i, "?>") + 1
		case hasPrefixAt(doc, i, "<!--"):
			i = lastOf(doc, i+len("<!--"), "-->") + 1
		case hasPrefixAt(doc, i, "<!DOCTYPE"):
			end, ok := doctypeEnd(doc, i+len("<!DOCTYPE"))
			_, subset, found := strings.Cut(doc[i:end], "[")
			if !ok || !found {
				return "", 0
			}
			return subset, end
		default:
			return "", 0
		}
		if i > len(doc) {
			return "", 0
		}
	}
}

// An expander knows the entities of one document.
type expander struct {
	values map[string]string
	open   map[string]bool // the entities being expanded
}

// declare reads the declarations of entities. The first one of a name counts.
func (x *expander) declare(subset string) {
	for i := 0; i < len(subset); i++ {
		switch rest := subset[i:]; {
		case strings.HasPrefix(rest, "<!--"):
			i = lastOf(subset, i+len("<!--"), "-->")
		case strings.HasPrefix(rest, "<?"):
			i = lastOf(subset, i, "?>")
		case strings.HasPrefix(rest, "<!ENTITY"):
			i = x.declaration(subset, i+len("<!ENTITY"))
		case rest[0] == '"', rest[0] == '\'':
			i = lastOf(subset, i+1, rest[:1])
		}
	}
}

// declaration reads one declaration after its keyword, and returns where its value ends.
func (x *expander) declaration(subset string, i int) (end int) {
	begin := skipSpace(subset, i)
	end = nameEnd(subset, begin)
	name := subset[begin:end]
	quote := skipSpace(subset, end)
	if name == "" || begin == i || quote == end || quote == len(subset) || subset[quote] != '"' && subset[quote] != '\'' {
		return end
	}
	end = lastOf(subset, quote+1, subset[quote:quote+1])
	if end == len(subset) || len(x.values) == maxEntities {
		return end
	}
	switch name {
	case "amp", "lt", "gt", "quot", "apos":
		return end
	}
	if _, ok := x.values[name]; !ok {
		x.values[name] = characters(subset[quote+1 : end])
	}
	return end
}

// characters decodes the numeric references in the value of an entity.
func characters(value string) string {
	var b strings.Builder
	for {
		i := strings.Index(value, "&#")
		if i < 0 {
			b.WriteString(value)
			return b.String()
		}
		kind, n, r := reference(value[i:])
		b.WriteString(value[:i])
		if kind == refChar {
			b.WriteRune(r)
		} else {
			b.WriteString(value[i : i+n])
		}
		value = value[i+n:]
	}
}

// document writes the part of a document after its DOCTYPE. It reports whether this part
// is no longer than most.
func (x *expander) document(b *strings.Builder, doc string, most int) bool {
	for i := 0; i < len(doc) && b.Len() <= most; {
		begin, inTag := i, false
		switch {
		case hasPrefixAt(doc, i, "<!--"):
			i = lastOf(doc, i+len("<!--"), "-->") + 1
		case hasPrefixAt(doc, i, "<![CDATA["):
			i = lastOf(doc, i, "]]>") + 1
		case hasPrefixAt(doc, i, "<?"):
			i = lastOf(doc, i, "?>") + 1
		case doc[i] == '<':
			i, inTag = tagEnd(doc, i), true
			x.text(b, doc[begin:i], inTag, most)
			continue
		default:
			i = indexFrom(doc, i, '<')
			x.text(b, doc[begin:i], false, most)
			continue
		}
		i = min(i, len(doc))
		b.WriteString(doc[begin:i])
	}
	return b.Len() <= most
}

// tagEnd returns where the tag at i ends; ">" may occur in its values.
func tagEnd(doc string, i int) int {
	for i++; i < len(doc); i++ {
		switch doc[i] {
		case '>':
			return i + 1
		case '<':
			return i
		case '"', '\'':
			end := lastOf(doc, i+1, doc[i:i+1])
			if strings.IndexByte(doc[i:min(end, len(doc))], '<') >= 0 { // a value without its end
				continue
			}
			i = end
		}
	}
	return len(doc)
}

// text writes text or a tag.
func (x *expander) text(b *strings.Builder, text string, inTag bool, most int) {
	for b.Len() <= most {
		i := strings.IndexByte(text, '&')
		if i < 0 {
			b.WriteString(text)
			return
		}
		b.WriteString(text[:i])
		end := nameEnd(text, i+1)
		value, ok := "", false
		if end > i+1 && end < len(text) && text[end] == ';' {
			value, ok = x.value(text[i+1 : end])
		}
		if !ok {
			b.WriteByte('&')
			text = text[i+1:]
			continue
		}
		if inTag {
			value = strings.NewReplacer("<", "&lt;", `"`, "&quot;", "'", "&apos;").Replace(value)
		}
		b.WriteString(value)
		text = text[end+1:]
	}
}

// value returns the text of an entity, with the entities in it expanded. An entity is
// unknown if it contains itself or is too long.
func (x *expander) value(name string) (value string, ok bool) {
	value, ok = x.values[name]
	if !ok || x.open[name] || len(value) > maxEntity {
		return "", false
	}
	if strings.IndexByte(value, '&') < 0 {
		return value, true
	}
	x.open[name] = true
	var b strings.Builder
	x.text(&b, value, false, maxEntity)
	x.open[name] = false
	if b.Len() > maxEntity {
		delete(x.values, name) // it is expanded only once
		return "", false
	}
	x.values[name] = b.String()
	return b.String(), true
}
