package xmlscan

import "strings"

// declaration reads the markup after "<!" at i.
func (s *Scanner) declaration(i int) Token {
	switch rest := s.doc[i:]; {
	case strings.HasPrefix(rest, "<!--"):
		return s.comment(i)
	case strings.HasPrefix(rest, "<![CDATA[") && len(s.open) > 0:
		return s.cdata(i)
	case strings.HasPrefix(rest, "<!DOCTYPE") && s.part == inProlog:
		return s.doctype(i + len("<!DOCTYPE"))
	case len(rest) < 9 && (strings.HasPrefix("<!--", rest) ||
		strings.HasPrefix("<![CDATA[", rest) || strings.HasPrefix("<!DOCTYPE", rest)):
		return s.truncated()
	}
	return s.syntax(i, "markup declaration out of place")
}

// comment reads the comment at i. It should not have two hyphens in it, but may.
func (s *Scanner) comment(i int) Token {
	body, odd := i+len("<!--"), false
	for j := body; ; j++ {
		n := strings.Index(s.doc[j:], "--")
		if n < 0 || j+n+2 == len(s.doc) {
			return s.truncated()
		}
		j += n
		end := commentEnd(s.doc, j)
		if s.doc[j+2] != '>' {
			s.note("comment-hyphens", j, "two hyphens in a comment", "")
			odd = true
		}
		if end < 0 {
			continue
		}
		s.controls(body, j)
		s.end = end
		if odd {
			s.oddSections.add(s.doc[i:end])
		}
		return misc
	}
}

// commentEnd returns where a comment with two hyphens at i ends; -1 if it continues. Authors
// of HTML also end comments with "--!>".
func commentEnd(doc string, i int) int {
	switch rest := doc[i+len("--"):]; {
	case strings.HasPrefix(rest, ">"):
		return i + len("-->")
	case strings.HasPrefix(rest, "!>"):
		return i + len("--!>")
	}
	return -1
}

// sections are comments and CDATA sections.
type sections []string

// add adds one, unless there are enough.
func (s *sections) add(section string) {
	if len(*s) < maxNotes {
		*s = append(*s, section)
	}
}

// OddSections returns the first hundred comments with two hyphens, and CDATA sections with the
// beginning of another, in them: perhaps the first one lacks its end.
func (s *Scanner) OddSections() []string { return s.oddSections }

// nestedCData returns where another CDATA section begins in the text of one, or -1. Brackets
// are rarer than anything else in the mark.
func nestedCData(text string) int {
	const mark = "<![CDATA["
	for i := 0; ; {
		n := strings.IndexByte(text[i:], '[')
		if n < 0 {
			return nowhere
		}
		i += n + 1
		if begin := i - len("<!["); begin >= 0 && strings.HasPrefix(text[begin:], mark) {
			return begin
		}
	}
}

// cdataEnd returns where the text of the CDATA section at i ends, and where the section does.
// A section without an end, because another begins in it, ends with the element around it.
func cdataEnd(doc string, i int) (text, end int) {
	body := i + len("<![CDATA[")
	n := strings.Index(doc[body:], "]]>")
	if n < 0 {
		return len(doc), len(doc)
	}
	if nested := nestedCData(doc[body : body+n]); nested >= 0 {
		if at := endAround(doc[:body+nested], i); at >= 0 {
			return at, at
		}
	}
	return body + n, body + n + len("]]>")
}

// endAround returns where the element around the CDATA section at i ends, by the tag before the
// section, or -1.
func endAround(doc string, i int) int {
	tag := strings.LastIndexByte(doc[:i], '<')
	if tag < 0 || !strings.HasSuffix(strings.TrimRight(doc[tag:i], " \t\r\n"), ">") {
		return nowhere
	}
	name := doc[tag+1 : nameEnd(doc, tag+1)]
	if at := strings.Index(doc[i:], "</"+name); name != "" && at >= 0 {
		return i + at
	}
	return nowhere
}

// procInst reads the processing instruction at i.
func (s *Scanner) procInst(i int) Token {
	j := i + len("<?")
	for j < len(s.doc) && class[s.doc[j]]&nameByte != 0 {
		j++
	}
	target := s.doc[i+len("<?") : j]
	n := strings.Index(s.doc[j:], "?>")
	switch {
	case n < 0:
		return s.truncated()
	case target == "" || class[target[0]]&nameStart == 0 || !validName(target):
		return s.syntax(i, "processing instruction without a target")
	case i > 0 && strings.EqualFold(target, "xml"):
		s.note("misplaced-declaration", i, "XML declaration that is not at the beginning", "")
	case i == 0 && strings.EqualFold(target, "xml") && !wellDeclared(s.doc[:j+n]):
		s.note("malformed-declaration", i, "XML declaration without version, or with its parts in another order", "")
	}
	s.controls(j, j+n)
	s.end = j + n + len("?>")
	return misc
}

// wellDeclared reports whether an XML declaration, without its end, has the form of XML 1.0 §2.8:
// a version 1.x, then possibly encoding and standalone.
func wellDeclared(declaration string) bool {
	rest, ok := strings.CutPrefix(declaration, "<?xml")
	if !ok {
		return false
	}
	rest, value, ok := pseudoAttribute(rest, "version")
	if !ok || !strings.HasPrefix(value, "1.") || strings.Trim(value[2:], "0123456789") != "" {
		return false
	}
	if after, value, ok := pseudoAttribute(rest, "encoding"); ok && value != "" {
		rest = after
	}
	if after, value, ok := pseudoAttribute(rest, "standalone"); ok && (value == "yes" || value == "no") {
		rest = after
	}
	return strings.Trim(rest, " \t\r\n") == ""
}

// pseudoAttribute reads an attribute of an XML declaration, after white space, and returns
// what follows.
func pseudoAttribute(text, name string) (rest, value string, ok bool) {
	const space = " \t\r\n"
	inner := strings.TrimLeft(text, space)
	inner, ok = strings.CutPrefix(inner, name)
	if !ok || len(inner)+len(name) == len(text) {
		return text, "", false
	}
	inner, ok = strings.CutPrefix(strings.TrimLeft(inner, space), "=")
	inner = strings.TrimLeft(inner, space)
	if !ok || inner == "" || inner[0] != '"' && inner[0] != '\'' {
		return text, "", false
	}
	value, rest, ok = strings.Cut(inner[1:], inner[:1])
	return rest, value, ok
}

// cdata reads the CDATA section at i.
func (s *Scanner) cdata(i int) Token {
	if end := sectionEnd(s.doc, i+len("<![CDATA[")); end >= 0 {
		return s.section(i, end)
	}
	return s.truncated()
}

// section reads the CDATA section at i whose text ends at end.
func (s *Scanner) section(i, end int) Token {
	body := i + len("<![CDATA[")
	s.unended = false
	if !s.again && nestedCData(s.doc[body:end]) >= 0 {
		s.oddSections.add(s.doc[i:end])
	}
	if s.form = literal; s.control(body) < end {
		s.form = coded
		s.controls(body, end)
	}
	s.end = end + len("]]>")
	return CData
}

// sectionEnd returns the offset of the first "]]>" from i on; -1 if there is none. Brackets are rare.
func sectionEnd(doc string, i int) int {
	for ; ; i++ {
		if i = indexFrom(doc, i, ']'); i == len(doc) {
			return nowhere
		}
		if hasPrefixAt(doc, i, "]]>") {
			return i
		}
	}
}

// doctype passes over a DOCTYPE; i is after its keyword. Its internal subset may have
// quotes, comments, processing instructions and declarations, with characters that
// would otherwise end it. It declares nothing.
func (s *Scanner) doctype(i int) Token {
	end, ok := doctypeEnd(s.doc, i)
	if !ok {
		return s.truncated()
	}
	if s.doctypes++; s.doctypes > 1 {
		s.note("second-doctype", s.start, "a second DOCTYPE", "")
	}
	s.end = end
	return misc
}

// doctypeEnd returns where such a DOCTYPE ends; ok is false if it does not.
func doctypeEnd(doc string, i int) (end int, ok bool) {
	depth, brackets := 0, 0
	for ; i < len(doc); i++ {
		switch c := doc[i]; c {
		case '"', '\'':
			i = lastOf(doc, i+1, doc[i:i+1])
		case '[':
			brackets++
		case ']':
			brackets--
		case '<':
			if hasPrefixAt(doc, i, "<![CDATA[") || afterSection(doc, i) == i {
				depth++
			} else {
				i = afterSection(doc, i) - 1
			}
		case '>':
			if depth == 0 && brackets <= 0 {
				return i + 1, true
			}
			depth--
		}
	}
	return len(doc), false
}

// afterSection returns the index after the comment, CDATA section or processing instruction
// at i; i if there is none.
func afterSection(doc string, i int) int {
	for _, s := range [...]struct{ begin, end string }{{"<!--", "-->"}, {"<?", "?>"}, {"<![CDATA[", "]]>"}} {
		if hasPrefixAt(doc, i, s.begin) {
			return after(doc, i+len(s.begin), s.end)
		}
	}
	return i
}

// after returns the index after the first occurrence from i on, or the length of the
// document.
func after(doc string, i int, what string) int { return min(lastOf(doc, i, what)+1, len(doc)) }

// lastOf returns the index of the last byte of the first occurrence from i on, or the length
// of the document.
func lastOf(doc string, i int, what string) int {
	n := strings.Index(doc[i:], what)
	if n < 0 {
		return len(doc)
	}
	return i + n + len(what) - 1
}
