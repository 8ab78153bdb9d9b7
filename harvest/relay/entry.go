package relay

import (
	"fmt"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
	"github.com/feedhistory/feedhistory/mirror"
)

// entryOf returns the entry of a record as an Atom entry that is valid by itself: as it was
// published, if it is one, and else converted.
func entryOf(r *mirror.Record) (*feedhistory.Entry, error) {
	e, err := r.Entry()
	if err != nil || isValid(r, e) {
		return e, err
	}
	d := e.Draft()
	d.ID = r.ID
	if d.Updated.IsZero() {
		d.Updated = r.Time()
	}
	e, err = d.Entry()
	if err != nil {
		return nil, fmt.Errorf("entry %q: %w", r.ID, err)
	}
	return e, nil
}

func isValid(r *mirror.Record, e *feedhistory.Entry) bool {
	if r.Content.Format != feedhistory.Atom || e.WeakID || e.ID != r.ID || e.Updated.IsZero() {
		return false
	}
	text := string(e.XML())
	s := xmlscan.NewFragment(text, nil, xmlscan.Unlimited())
	return s.Child(0) && s.Is(vocab.Atom, "entry") && xmlscan.WellFormed(text) == nil
}

const nsApp = "http://www.w3.org/2007/app"

// stamped returns an entry with its time of modification as app:edited, in place of its own
// one, if it has one (RFC 5023 §10.2).
func stamped(e *feedhistory.Entry, at time.Time) (*feedhistory.Entry, error) {
	text := string(e.XML())
	var b strings.Builder
	s := xmlscan.New(text, xmlscan.Unlimited())
	s.Child(0)
	b.WriteString(text[:s.End()])
	fmt.Fprintf(&b, `<edited xmlns="%s">%s</edited>`, nsApp, at.Format(time.RFC3339Nano))
	from := s.End()
	for depth := s.Depth(); s.Child(depth); {
		start, own := s.Offset(), s.Is(nsApp, "edited")
		if s.Skip(); own {
			b.WriteString(text[from:start])
			from = s.End()
		}
	}
	b.WriteString(text[from:])
	return feedhistory.ReadEntry(feedhistory.Atom, b.String(), "")
}
