package feedtime

import "time"

// result combines the parts.
func (d *dateText) result() (t time.Time, z Zone, ok bool) {
	c := d.clock
	if d.count == 3 && d.month > 0 { // 02 Jan 2006 15 -0700
		if c.set || !d.zoned || d.numbers[2].digits > 2 {
			return t, z, false
		}
		c.hour, c.set = d.numbers[2].value, true
	}
	year, month, day, ok := d.date()
	if !ok || !c.valid() {
		return t, z, false
	}
	if z = d.zone; d.korean && !d.zoned {
		z.offset = 9 * 3600
	}
	// A leap second is the first second of the next minute, 24:00 the beginning
	// of the next day.
	t = time.Date(year, time.Month(month), day, c.hour24(), c.minute, c.second, c.nano, z.Location())
	midnight := time.Date(year, time.Month(month), day, 0, 0, 0, 0, time.UTC)
	if midnight.Day() != day || int(midnight.Month()) != month { // 31 February, or 0000-00-00
		return time.Time{}, Zone{}, false
	}
	return t, z, true
}

// valid reports whether the time exists.
func (c clock) valid() bool {
	switch {
	case c.hour == 24:
		return c.minute == 0 && c.second == 0 && c.nano == 0 && c.half == 0
	case c.half == 'a' && c.hour > 12:
		return false
	}
	return c.hour < 24 && c.minute < 60 && c.second <= 60
}

// hour24 returns the hour since midnight.
func (c clock) hour24() int {
	switch {
	case c.half == 'a' && c.hour == 12:
		return 0
	case c.half == 'p' && c.hour < 12:
		return c.hour + 12
	}
	return c.hour
}

// date returns the date the numbers mean.
func (d *dateText) date() (year, month, day int, ok bool) {
	a, b, c := d.numbers[0], d.numbers[1], d.numbers[2]
	switch {
	case d.month > 0 && d.count >= 2 && a.digits > 2: // 2006 January 02
		return a.year(), d.month, b.value, b.digits <= 2
	case d.month > 0 && d.count >= 2:
		return b.year(), d.month, a.value, b.digits >= 2
	case d.month > 0 || a.digits == 4 && d.count < 3 && d.clock.set:
		return 0, 0, 0, false
	case a.digits == 4 && d.count == 1:
		return a.value, 1, 1, true
	case a.digits == 4 && d.count == 2 && b.digits == 3: // the day of the year
		t := time.Date(a.value, 1, b.value, 0, 0, 0, 0, time.UTC)
		return a.value, int(t.Month()), t.Day(), t.Year() == a.value && b.separator == '-'
	case a.digits == 4 && d.count == 2:
		return a.value, b.value, 1, b.separator == '-'
	case d.count < 3:
		return 0, 0, 0, false
	case a.digits == 4:
		return a.value, b.value, c.value, c.digits <= 2
	case c.digits == 4 && a.digits <= 2 && b.digits <= 2:
		month, day = d.order(a.value, b.value, b.separator)
		return c.value, month, day, true
	case b.digits > 2 || c.digits > 2:
		return 0, 0, 0, false
	case b.separator == '.': // 13.12.03
		return c.year(), b.value, a.value, c.digits == 2
	}
	// 03-12-13 is a date, but 03/12/13 only with a time gofeed supports.
	known := b.separator == '-' || d.clock.set && !d.clock.seconds && !d.zoned
	return a.year(), b.value, c.value, known && a.digits == 2
}

// order decides which number is the month, if the year comes after them. With
// slashes, the month comes first if the time looks American.
func (d *dateText) order(first, second int, separator byte) (month, day int) {
	american := separator == '/' && (d.clock.half != 0 || d.zone.Name != "" && d.clock.seconds)
	switch {
	case american && first <= 12, second > 12 && separator != '.':
		return first, second
	}
	return second, first
}

// year returns the year a number means (RFC 2822 §4.3).
func (n dateNumber) year() int {
	switch {
	case n.digits == 3:
		return n.value + 1900
	case n.digits > 2:
		return n.value
	case n.value < 50:
		return n.value + 2000
	}
	return n.value + 1900
}
