package xmlscan

import "strings"

// plan returns the tags of a document without a counterpart: the start tags of elements ended
// by the end tag of another, and the end tags without a match. tooDeep is the place where
// elements nest too deep for a plan, or negative.
//
// Elements open at the end of a truncated document may only have been cut, and do not count.
// Those of a fragment do, and so do HTML's elements without an end tag.
func plan(doc string, fragment bool) (odd marks, tooDeep int) {
	p := &planner{
		lexer: lexer{doc: doc}, fragment: fragment,
		odd: make(marks, len(doc)/64+1), names: map[string]int{}, lastRoot: nowhere,
	}
	if tooDeep = p.run(); tooDeep >= 0 {
		return p.odd, tooDeep
	}
	for _, t := range p.open {
		if name := doc[t.at+1 : t.nameEnd]; fragment || isVoid(name) {
			p.odd.set(t.at)
		}
	}
	return p.odd, nowhere
}

// A planner goes through a document, and knows which elements are open.
type planner struct {
	lexer
	fragment bool
	odd      marks
	open     []openTag
	names    map[string]int // the number of open elements by name, in lower case
	rooted   bool
	root     string // the root's name
	lastRoot int    // the offset of the last end tag with this name
}

type openTag struct{ at, nameEnd int }

// mostOpen is how deep elements may nest for a plan: far deeper than Limits allow, because
// elements without end tags accumulate here.
const mostOpen = 1 << 16

// run goes through the document, and returns where it nests too deep, or -1.
func (p *planner) run() (tooDeep int) {
	for i := 0; i < len(p.doc) && (!p.rooted || len(p.open) > 0); {
		n := strings.IndexByte(p.doc[i:], '<')
		if n < 0 {
			break
		}
		if len(p.open) == mostOpen {
			return i
		}
		i = p.markup(i + n)
	}
	return nowhere
}

// markup passes over the markup at i, and returns where it ends.
func (p *planner) markup(i int) (end int) {
	switch kind := markupAt(p.doc, i, len(p.open) > 0, p.rooted); kind {
	case markupStart:
		return p.start(i)
	case markupEnd:
		tag := endTagAt(p.doc, i)
		p.end(i, tag.name)
		return tag.end
	case markupComment:
		return p.afterComment(i + len("<!--"))
	case markupCData:
		_, end = cdataEnd(p.doc, i)
		return end
	case markupDoctype:
		end, _ = doctypeEnd(p.doc, i+len("<!DOCTYPE"))
		return end
	case markupInstruction:
		if !p.isOddInstruction(i) {
			return p.after(i+len("<?"), "?>")
		}
		return oddEnd(p.doc, i+2)
	case markupDeclaration:
		return oddEnd(p.doc, i+2)
	}
	return i + 1
}

// afterComment returns the index after the comment whose text begins at i.
func (p *planner) afterComment(i int) int {
	for ; ; i++ {
		n := strings.Index(p.doc[i:], "--")
		if n < 0 {
			return len(p.doc)
		}
		i += n
		if end := commentEnd(p.doc, i); end >= 0 {
			return end
		}
	}
}

// after returns the index after the first occurrence from i on.
func (p *planner) after(i int, what string) int {
	n := strings.Index(p.doc[i:], what)
	if n < 0 {
		return len(p.doc)
	}
	return i + n + len(what)
}

func (p *planner) start(at int) (end int) {
	t := openTag{at: at, nameEnd: nameEnd(p.doc, at+1)}
	if !p.rooted {
		p.rooted, p.root = true, strings.ToLower(p.doc[at+1:t.nameEnd])
	}
	for i := t.nameEnd; ; {
		piece := pieceAt(p.doc, i)
		switch i = piece.next; piece.kind {
		case pieceEmpty:
			return i
		case pieceClose, pieceCut:
			p.open = append(p.open, t)
			p.names[p.name(t)]++
			return i
		}
	}
}

// name returns the key of an element in names.
func (p *planner) name(t openTag) string { return strings.ToLower(p.doc[t.at+1 : t.nameEnd]) }

// end closes the innermost element matched by an end tag, and all inside it.
func (p *planner) end(at int, name string) {
	name = strings.ToLower(name)
	if p.names[name] == 0 || p.isPremature(at, name) {
		p.odd.set(at)
		return
	}
	for {
		last := len(p.open) - 1
		t := p.open[last]
		p.open = p.open[:last]
		open := p.name(t)
		if p.names[open]--; p.names[open] == 0 {
			delete(p.names, open)
		}
		if open == name {
			return
		}
		p.odd.set(t.at)
	}
}

// isPremature reports whether an end tag would close the root element together with other
// open elements, although another such end tag follows.
func (p *planner) isPremature(at int, name string) bool {
	if name != p.root || p.names[name] > 1 || len(p.open) == 1 {
		return false
	}
	if p.lastRoot < 0 {
		p.lastRoot = strings.LastIndex(p.doc, "</"+p.doc[p.open[0].at+1:p.open[0].nameEnd])
	}
	return at < p.lastRoot
}

// isVoid recognises HTML's elements without content, which therefore have no end tag. For
// those whose names feeds also use, only the context can tell.
func isVoid(name string) bool {
	switch strings.ToLower(name) {
	case "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen",
		"meta", "param", "track", "wbr":
		return true
	}
	return false
}
