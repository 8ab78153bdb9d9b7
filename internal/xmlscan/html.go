package xmlscan

import (
	"strings"

	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/markup"
	"github.com/feedhistory/feedhistory/internal/vocab"
)

// Inner returns the markup inside the current element, and moves past it.
func (c *Cursor) Inner() string {
	start, depth := c.End(), c.Depth()
	for c.Next() != Stop && c.Depth() >= depth {
	}
	return c.doc[start:max(start, c.Offset())]
}

// HTML returns the markup inside the div that is the only child of an xhtml construct
// (RFC 4287 §3.1.1.3), or all markup, as HTML: XHTML elements lose their prefix, and
// empty elements get an end tag where HTML requires one. It makes references absolute
// where an inner element has an xml:base, because the result has no such base, and
// returns the base at the div. baseOf returns the base at the current element.
func (c *Cursor) HTML(div bool, baseOf func() string) (body, base string) {
	var b strings.Builder
	depth, bases := c.Depth(), len(c.Bases())
	base = baseOf()
	const within, after = 1, 2
	state := after // of the div
	if div {
		state = 0
	}
	mixed := !div && strings.HasPrefix(strings.TrimLeft(c.doc[c.end:], " \t\r\n"), "&lt;")
	for tok := c.Next(); tok != Stop && c.Depth() >= depth; tok = c.Next() {
		switch tok {
		case Start:
			if state == 0 && c.Depth() == depth+1 && c.Local() == "div" {
				state, bases, base = within, len(c.Bases()), baseOf()
				continue
			}
			c.writeStart(&b, len(c.bases) > bases, baseOf)
		case End:
			if state == within && c.Depth() == depth {
				state = after
				continue
			}
			if !markup.IsVoid(c.Local()) {
				b.WriteString("</" + c.htmlName() + ">")
			}
		case Text:
			if mixed { // the publisher escaped some of the markup
				b.Write(c.AppendText(nil))
			} else {
				b.WriteString(c.doc[c.start:c.end])
			}
		case CData:
			WriteText(&b, string(c.AppendText(nil)))
		}
	}
	return strings.Trim(b.String(), " \t\r\n"), base
}

// htmlName returns the current element's name as HTML has it.
func (c *Cursor) htmlName() string {
	if prefix := c.Prefix(); prefix != "" && c.Space() != vocab.XHTML {
		return prefix + ":" + c.Local()
	}
	return c.Local()
}

func (c *Cursor) writeStart(b *strings.Builder, absolute bool, baseOf func() string) {
	b.WriteString("<" + c.htmlName())
	for _, a := range c.Attrs() {
		name, value := a.Local, a.Value()
		if a.Space == vocab.XML && name == "base" {
			continue
		}
		if a.Prefix != "" {
			name = a.Prefix + ":" + name
		} else if absolute && markup.IsReference(name) {
			value = iri.Resolve(baseOf(), value)
		}
		WriteAttr(b, name, value)
	}
	b.WriteByte('>')
}
