package feedtime

import (
	"strings"
	"time"
)

// A dateText is a date being read, in one pass over its text: RFC 822 and RFC
// 2822 with their obsolete forms, W3CDTF and ISO 8601, asctime, and other forms
// in feeds. There is no list of layouts to try, because most dates would try
// all of them.
type dateText struct {
	text string
	at   int // the offset of the next character

	numbers  [3]dateNumber // of the date, in order
	count    int           // their number
	month    int           // by its name; zero if there was none
	separate byte          // the last character neither a space nor part of anything
	before   precedingText

	clock  clock
	zone   Zone
	zoned  bool
	korean bool // written in the Korean way; Korean time is nine hours ahead
}

// A precedingText is the text right before the next character, as far as it matters.
type precedingText uint8

const (
	otherText precedingText = iota
	isoT                    // the T of ISO 8601
	ofNumber                // a number of the date
)

// A dateNumber is a number in a date.
type dateNumber struct {
	value, digits int
	separator     byte // the character before it; zero for white space
}

// A clock is a time of day.
type clock struct {
	hour, minute, second, nano int

	set     bool // whether there is a time
	seconds bool // whether it has seconds
	half    byte // 'a' for a.m., 'p' for p.m.
}

// maxDate is the maximum length of a date, with the comments JavaScript writes.
const maxDate = 100

// readDate reads a date in any of the formats in feeds. Without a zone it is in
// UTC.
func readDate(text string) (t time.Time, z Zone, ok bool) {
	if len(text) > maxDate {
		return t, z, false
	}
	d := dateText{text: text}
	for d.at < len(text) && !(d.clock.set && d.zoned && d.dated()) { // comments may follow the zone
		if !d.token() {
			return t, z, false
		}
	}
	return d.result()
}

// dated reports whether the date is complete.
func (d *dateText) dated() bool { return d.count == 3 || d.month > 0 && d.count == 2 }

// token reads the next part of the date.
func (d *dateText) token() bool {
	const noBreak = "\u00a0"
	c := d.text[d.at]
	switch {
	case isDigit(c):
		return d.number()
	case d.beginsOffset():
		return d.offset()
	case strings.HasPrefix(d.text[d.at:], noBreak):
		d.at++
	case c >= 0x80 || isLetter(c):
		return d.word()
	case strings.IndexByte(" \t\r\n", c) >= 0:
	case strings.IndexByte(",.-/()", c) >= 0 && d.at > 0:
		d.separate = c
	default:
		return false
	}
	d.at++
	d.before = otherText
	return true
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// digits reads a number.
func (d *dateText) digits() (value, digits int) {
	for ; d.at < len(d.text) && isDigit(d.text[d.at]); d.at++ {
		if digits++; digits <= 14 {
			value = value*10 + int(d.text[d.at]-'0')
		}
	}
	return value, digits
}

// next reports whether c comes next, followed by a digit if digit is set.
func (d *dateText) next(c byte, digit bool) bool {
	if d.at >= len(d.text) || d.text[d.at] != c {
		return false
	}
	return !digit || d.at+1 < len(d.text) && isDigit(d.text[d.at+1])
}

// number reads a number, which may belong to the date or begin a time.
func (d *dateText) number() bool {
	value, digits := d.digits()
	afterT := d.before == isoT
	if afterT {
		d.before = otherText
	}
	switch {
	case digits <= 2 && d.next(':', true):
		return d.time(value)
	case afterT && !d.clock.set:
		return d.compactTime(value, digits)
	case d.clock.set && d.dated() && value == 0 && (digits == 2 || digits == 4):
		d.zoned = true // 00 and 0000
		return true
	case d.count == 0 && d.month == 0 && digits > 6:
		return d.compactDate(value, digits)
	case d.count == 3 || digits > 4:
		return false
	}
	d.add(value, digits)
	return true
}

func (d *dateText) add(value, digits int) {
	d.numbers[d.count] = dateNumber{value, digits, d.separate}
	d.count++
	d.separate, d.before = 0, ofNumber
}

// compactDate splits YYYYMMDD, YYYYDDD, or the former with a time.
func (d *dateText) compactDate(value, digits int) bool {
	switch digits {
	case 14, 12:
		if digits == 12 {
			value *= 100
		}
		d.clock = clock{hour: value / 1e4 % 100, minute: value / 100 % 100, second: value % 100, set: true, seconds: digits == 14}
		value /= 1e6
	case 8:
	case 7:
		d.add(value/1e3, 4)
		d.separate = '-'
		d.add(value%1e3, 3)
		return true
	default:
		return false
	}
	d.add(value/1e4, 4)
	d.add(value/100%100, 2)
	d.add(value%100, 2)
	return true
}

// time reads the rest of a time after the hour. An earlier time was a meaningless midnight.
func (d *dateText) time(hour int) bool {
	if c := d.clock; c.set && c.hour+c.minute+c.second+c.nano > 0 {
		return false
	}
	d.clock = clock{hour: hour, set: true, half: d.clock.half}
	d.at++
	minute, digits := d.digits()
	if d.clock.minute = minute; digits > 2 {
		return false
	}
	if d.next(':', true) {
		d.at++
		second, digits := d.digits()
		if digits > 2 {
			return false
		}
		d.clock.second, d.clock.seconds = second, true
		d.fraction()
	}
	if strings.HasPrefix(d.text[d.at:], ":00") || d.next(':', false) && d.at+1 < len(d.text) && strings.IndexByte("+-", d.text[d.at+1]) >= 0 {
		d.at++ // 15:04:05:-0700, 15:04:05:00
		d.digits()
	}
	return !d.next(':', false)
}

// fraction reads the fraction of a second.
func (d *dateText) fraction() {
	if !d.next('.', true) && !d.next(',', true) {
		return
	}
	d.at++
	for unit := int(1e8); d.at < len(d.text) && isDigit(d.text[d.at]); d.at, unit = d.at+1, unit/10 {
		d.clock.nano += unit * int(d.text[d.at]-'0')
	}
}

// compactTime splits hh, hhmm or hhmmss.
func (d *dateText) compactTime(value, digits int) bool {
	switch digits {
	case 1, 2:
		d.clock = clock{hour: value}
	case 4:
		d.clock = clock{hour: value / 100, minute: value % 100}
	case 6:
		d.clock = clock{hour: value / 1e4, minute: value / 100 % 100, second: value % 100, seconds: true}
		d.fraction()
	default:
		return false
	}
	d.clock.set = true
	return true
}

// beginsOffset reports whether the sign here begins a zone.
func (d *dateText) beginsOffset() bool {
	rest := d.text[d.at:]
	switch {
	case d.zoned || len(rest) < 2 || rest[0] != '+' && rest[0] != '-' || !isDigit(rest[1]):
		return false
	case d.clock.set:
		return rest[0] == '+' || d.dated() || d.before != ofNumber // 15:04 02-01-2006
	case !d.dated():
		return false
	}
	return rest[0] == '+' || len(rest) == len("-0700") && d.before != ofNumber || len(rest) == len("-07:00") && rest[3] == ':'
}

// offset reads the offset of a zone from UTC: +h, +hh, +hmm, +hhmm, +hh:mm, and
// these with seconds.
func (d *dateText) offset() bool {
	negative := d.text[d.at] == '-'
	d.at++
	value, digits := d.digits()
	hours, minutes, seconds := value, 0, 0
	switch digits {
	case 1, 2:
		for _, part := range [...]*int{&minutes, &seconds} {
			if !d.next(':', true) {
				break
			}
			d.at++
			if *part, digits = d.digits(); digits > 2 {
				return false
			}
		}
	case 3, 4:
		hours, minutes = value/100, value%100
	case 5: // one digit too many
		hours, minutes = value/1000, value/10%100
	case 6:
		hours, minutes, seconds = value/1e4, value/100%100, value%100
	default:
		return false
	}
	d.zone, d.zoned = Zone{offset: hours*3600 + minutes*60 + seconds}, true
	if negative {
		d.zone.offset *= -1
	}
	return hours <= 24 && minutes <= 60 && seconds <= 60 && !d.next(':', false) // the same limits as in Go
}
