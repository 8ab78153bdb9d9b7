package xmlscan

// Child moves to the next Start at depth+1 and skips whatever lies between. It
// returns false when the element at depth has ended, or the scan has. So
//
//	for depth := s.Depth(); s.Child(depth); {
//		...
//	}
//
// visits the children of the current element, however much of each the body
// consumes. Child(0) moves to the root.
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

// Seek lets the scanner go on at an offset further on where a child of the current
// element begins.
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

// ElementText moves from a Start to its End and returns all character data of
// the element and its descendants. When that is one run of plain text, it is a
// part of the document and nothing is allocated. At other tokens it returns "".
func (s *Scanner) ElementText() string {
	if s.tok != Start {
		return ""
	}
	// A first run of plain text is kept as it is: only another calls for a buffer.
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

// Nested reports whether there were elements within that of the last ElementText.
func (s *Scanner) Nested() bool { return s.nested }

// joined returns what ElementText has gathered, and keeps its buffer for the next.
func (s *Scanner) joined(only string, buf []byte) string {
	s.buf = buf
	if len(buf) == 0 {
		return only
	}
	return string(buf)
}
