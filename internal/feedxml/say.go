package feedxml

import (
	"io"
	"strconv"

	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// Say writes the content of an entry, which is the current element: its elements,
// attributes and text, whatever its prefixes, escapes or surroundings. It leaves out the
// entry's own authors.
func (r *Elements) Say(w io.Writer) {
	var buf []byte
	write := func(parts ...string) {
		buf = buf[:0]
		for _, part := range parts {
			buf = append(append(strconv.AppendInt(buf, int64(len(part)), 10), ':'), part...)
		}
		_, _ = w.Write(buf)
	}
	var text []byte
	flush := func() {
		if len(text) > 0 {
			write("text", string(text))
			text = text[:0]
		}
	}
	s := r.Cursor
	for root := true; ; root = false {
		tok := xmlscan.Start
		if !root {
			tok = s.Next()
		}
		switch tok {
		case xmlscan.Stop:
			flush()
			return
		case xmlscan.Start:
			flush()
			if s.Is(vocab.Atom, "author") {
				s.Skip() // see Signed
				continue
			}
			write("start", s.Space(), s.Local())
			for _, a := range s.Attrs() {
				if !root || a.Space != vocab.XML {
					write(a.Space, a.Local, a.Value())
				}
			}
		case xmlscan.End:
			flush()
			write("end")
		default:
			text = s.AppendText(text)
		}
	}
}
