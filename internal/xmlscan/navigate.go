package xmlscan

// Child moves to the next Start at depth+1, and skips everything before it. It returns false
// if the element at depth, or the scan, has ended. So
//
//	for depth := s.Depth(); s.Child(depth); {
//		...
//	}
//
// visits the children of the current element, however much of each the body consumes. Child(0)
// moves to the root.
func (s *Scanner) Child(depth int) bool {
	for len(s.open) >= depth {
		switch s.Next() {
		case Stop:
			return false
		case Start:
			if len(s.open) == depth+1 {
				return true
			}
		}
	}
	return false
}

// Seek makes the scanner continue at a later offset, at which a child of the current element
// begins.
func (s *Scanner) Seek(offset int) { s.end, s.empty = offset, false }

// Skip moves from a Start to its End. At other tokens it does nothing.
func (s *Scanner) Skip() {
	if s.tok != Start {
		return
	}
	for depth := len(s.open); len(s.open) >= depth; {
		if s.Next() == Stop {
			return
		}
	}
}

// ElementText moves from a Start to its End, and returns all character data of the element and
// its descendants. If that is one run of plain text, the result is a part of the document and
// needs no allocation. At other tokens it returns "".
func (s *Scanner) ElementText() string {
	if s.tok != Start {
		return ""
	}
	// The first run of plain text needs no buffer unless another follows.
	only, buf := "", s.buf[:0]
	s.nested = false
	for depth := len(s.open); len(s.open) >= depth; {
		switch s.Next() {
		case Stop:
			return s.joined(only, buf)
		case Start:
			s.nested = true
		case Text, CData:
			if s.plain && only == "" && len(buf) == 0 {
				only = s.raw()
				continue
			}
			buf = s.AppendText(append(buf, only...))
			only = ""
		}
	}
	return s.joined(only, buf)
}

// Nested reports whether the element of the last ElementText contained elements.
func (s *Scanner) Nested() bool { return s.nested }

// joined returns the text that ElementText has collected, and keeps its buffer for the next.
func (s *Scanner) joined(only string, buf []byte) string {
	s.buf = buf
	if len(buf) == 0 {
		return only
	}
	return string(buf)
}
