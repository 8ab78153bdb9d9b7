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
		d.text(e.ID)
	}
	d.time(e.Updated)
	d.time(e.Published)
	for i := range e.Links {
		l := &e.Links[i]
		for _, s := range [...]string{l.Rel, l.Href, l.Type, l.HrefLang, l.Title, l.Length} {
			d.text(s)
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

func (d *fieldDigest) text(s string) {
	d.number(uint64(len(s)))
	for ; len(s) >= 8; s = s[8:] {
		d.number(uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56)
	}
	for i := range len(s) {
		d.number(uint64(s[i]))
	}
}
