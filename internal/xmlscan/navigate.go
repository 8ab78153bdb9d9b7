package xmlscan

// A Cursor moves through a document, or a single element of one, in the order of its tokens.
// Make one with [New], [NewFragment], [Open] or [Mend].
type Cursor struct {
	Scanner
	Mender *Mender // the Mender; nil if reading ends where the Scanner's leniencies are not enough

	buf    []byte // the buffer of ElementText
	nested bool   // the last ElementText passed over elements
}

// New returns a Cursor at the beginning of a document, which must be valid UTF-8 without a
// byte order mark, as [Decode] returns it.
func New(doc string, lim Limits) *Cursor { return NewFragment(doc, nil, lim) }

// NewFragment returns a Cursor for a single element, with the namespace bindings of outer in
// scope.
func NewFragment(fragment string, outer []Binding, lim Limits) *Cursor {
	c := new(Cursor)
	c.open, c.attrs, c.bindings = make([]frame, 0, 8), make([]attr, 0, 8), make([]Binding, 0, len(outer)+4)
	c.reset(fragment, outer, lim)
	return c
}

// ReadAgain moves c, with its memory, to an element read before without an error. It
// makes no notes. Clean is the result of Clean before the element.
func (c *Cursor) ReadAgain(fragment string, outer []Binding, clean bool) {
	c.reset(fragment, outer, Unlimited())
	c.Mender, c.buf = nil, c.buf[:0]
	if c.again = true; clean {
		c.ahead.control = len(fragment)
	}
}

// Next moves to the next token. It checks comments, processing instructions, the DOCTYPE and the
// XML declaration, but does not return them. After Stop, Next always returns Stop; [Scanner.Err]
// says why.
func (c *Cursor) Next() Token {
	if c.Mender != nil {
		return c.Mender.next()
	}
	s := &c.Scanner
	s.tok = s.step()
	for s.tok == misc {
		s.tok = s.step()
	}
	return s.tok
}

// step moves to the next token, misc included.
func (c *Cursor) step() Token {
	if c.Mender != nil {
		return c.Mender.step()
	}
	return c.Scanner.step()
}

// Child moves to the next Start at depth+1, and skips everything before it. It returns false
// if the element at depth, or the scan, has ended. So
//
//	for depth := c.Depth(); c.Child(depth); {
//		...
//	}
//
// visits the children of the current element, however much of each the body consumes. Child(0)
// moves to the root.
func (c *Cursor) Child(depth int) bool {
	for len(c.open) >= depth {
		switch c.Next() {
		case Stop:
			return false
		case Start:
			if len(c.open) == depth+1 {
				return true
			}
		}
	}
	return false
}

// Seek makes the cursor continue at a later offset, at which a child of the current element
// begins.
func (c *Cursor) Seek(offset int) { c.end, c.empty = offset, false }

// Skip moves from a Start to its End. At other tokens it does nothing.
func (c *Cursor) Skip() {
	if c.tok != Start {
		return
	}
	for depth := len(c.open); len(c.open) >= depth; {
		if c.Next() == Stop {
			return
		}
	}
}

// ElementText moves from a Start to its End, and returns all character data of the element and
// its descendants. If they are one run of plain text, the result is a part of the document and
// needs no allocation. At other tokens it returns "".
func (c *Cursor) ElementText() string {
	if c.tok != Start {
		return ""
	}
	// The first run of plain text needs no buffer unless another follows.
	only, buf := "", c.buf[:0]
	c.nested = false
	for depth := len(c.open); len(c.open) >= depth; {
		switch c.Next() {
		case Stop:
			return c.joined(only, buf)
		case Start:
			c.nested = true
		case Text, CData:
			if c.form == literal && only == "" && len(buf) == 0 {
				only = c.raw()
				continue
			}
			buf = c.AppendText(append(buf, only...))
			only = ""
		}
	}
	return c.joined(only, buf)
}

// Nested reports whether the element of the last ElementText contained elements.
func (c *Cursor) Nested() bool { return c.nested }

// joined returns the text ElementText has collected, and keeps its buffer for the next.
func (c *Cursor) joined(only string, buf []byte) string {
	c.buf = buf
	if len(buf) == 0 {
		return only
	}
	return string(buf)
}
