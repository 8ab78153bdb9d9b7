package feedhistory

import "time"

// Entries whose exported fields were set after they were read.

// isAltered reports whether the exported fields were set since the entry was read, or
// never read at all, so that raw does not say the same.
func (e *Entry) isAltered() bool { return e.raw == "" || e.read != e.fields() }

// fields returns a digest of the exported fields, apart from Source. A weak ID is left out:
// raw does not say it.
func (e *Entry) fields() uint64 {
	var d fieldDigest
	if e.WeakID {
		d.number(1)
	} else {
		d.number(uint64(len(e.ID)))
		d.text(e.ID)
	}
	d.time(e.Updated)
	d.time(e.Published)
	for i := range e.Links {
		l := &e.Links[i]
		d.number(uint64(len(l.Rel)) ^ uint64(len(l.Href))<<8 ^ uint64(len(l.Type))<<24 ^
			uint64(len(l.HrefLang))<<34 ^ uint64(len(l.Title))<<42 ^ uint64(len(l.Length))<<56)
		for _, s := range [...]string{l.Rel, l.Href, l.Type, l.HrefLang, l.Title, l.Length} {
			if s != "" {
				d.text(s)
			}
		}
	}
	return uint64(d)
}

// A fieldDigest mixes values into 64 bits. It detects changes, and does not withstand
// forgery, which would gain nothing.
type fieldDigest uint64

func (d *fieldDigest) number(n uint64) {
	h := (uint64(*d) ^ n) * 0x9E3779B97F4A7C15
	*d = fieldDigest(h ^ h>>32)
}

func (d *fieldDigest) time(t time.Time) {
	d.number(uint64(t.Unix()))
	d.number(uint64(t.Nanosecond()))
}

// text mixes in a text, without its length.
func (d *fieldDigest) text(s string) {
	for ; len(s) >= 8; s = s[8:] {
		d.number(uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56)
	}
	tail := uint64(0)
	for i := range len(s) {
		tail = tail<<8 | uint64(s[i])
	}
	d.number(tail)
}
