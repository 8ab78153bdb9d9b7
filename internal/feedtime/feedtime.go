// Package feedtime reads the dates in feeds, in RFC 3339, in RFC 822 with the zones people
// write, and in other formats found there. It also orders the copies of an entry by their
// times, and counts the entries each update adds.
package feedtime

import (
	"math"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// The layouts of nearly every RSS feed; readDate handles the others.
const (
	layoutRSS     = "Mon, 2 Jan 2006 15:04:05"
	layoutNumeric = layoutRSS + " -0700"
)

// Read reads a date of any feed format; ok is false if it is invalid. A named zone is
// returned, because its meaning may be doubtful. Invalid text takes no more time than a
// valid date of the same length, and text longer than any date is not read.
func Read(s string) (t time.Time, z Zone, ok bool) {
	if s == "" {
		return t, z, false
	}
	if s[0] <= ' ' || s[len(s)-1] <= ' ' {
		if s = strings.Trim(s, " \t\r\n"); s == "" {
			return t, z, false
		}
	}
	if isDigit(s[0]) {
		if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
			return t, z, true
		}
	}
	if t, ok := parseRSSTime(s); ok {
		return t, z, true
	}
	return readDate(s)
}

// parseRSSTime reads the RFC 822 dates of RSS generators. It removes the zone first,
// because time.Parse would give EST the offset zero.
func parseRSSTime(s string) (time.Time, bool) {
	i := strings.LastIndexByte(s, ' ')
	if i < 0 {
		return time.Time{}, false
	}
	local, zone := s[:i], s[i+1:]
	switch t, ok := parseLocal(local); {
	case !ok:
	case zone == "GMT":
		return t, true
	case zone == "+0000": // time.Parse may return the local zone
		if _, offset := t.Local().Zone(); offset == 0 {
			return t.Local(), true
		}
		return t.In(time.FixedZone("", 0)), true
	}
	switch zone {
	case "GMT", "UTC", "UT", "Z":
		t, err := time.Parse(layoutRSS, local)
		return t, err == nil
	case "EDT":
		s = local + " -0400"
	case "EST", "CDT":
		s = local + " -0500"
	case "MDT": // and CST, which is also China's
		s = local + " -0600"
	case "MST", "PDT":
		s = local + " -0700"
	case "PST":
		s = local + " -0800"
	}
	t, err := time.Parse(layoutNumeric, s)
	return t, err == nil
}

// parseLocal reads a date in layoutRSS, if the day has two digits, ten times as
// fast as time.Parse.
func parseLocal(s string) (t time.Time, ok bool) {
	const form = "xxx, 00 xxx 0000 00:00:00"
	if len(s) != len(form) {
		return t, false
	}
	if s[3] != ',' || s[4] != ' ' || s[7] != ' ' || s[11] != ' ' || s[16] != ' ' || s[19] != ':' || s[22] != ':' {
		return t, false
	}
	odd := false
	number := func(i int) int {
		tens, units := s[i]-'0', s[i+1]-'0'
		odd = odd || tens > 9 || units > 9
		return int(tens)*10 + int(units)
	}
	day, century, year, hour, minute, second := number(5), number(12), number(14), number(17), number(20), number(23)
	if odd {
		return t, false
	}
	month := shortMonth(s[8:11])
	if !isShortDay(s[:3]) || month == 0 || hour > 23 || minute > 59 || second > 59 {
		return t, false
	}
	t = time.Date(century*100+year, month, day, hour, minute, second, 0, time.UTC)
	return t, t.Day() == day
}

// isShortDay reports whether a text is a day of the week as RFC 822 writes it.
func isShortDay(text string) bool {
	switch text {
	case "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun":
		return true
	}
	return false
}

// shortMonth returns the month that RFC 822 writes so; 0 if there is none.
func shortMonth(text string) time.Month {
	const names = "JanFebMarAprMayJunJulAugSepOctNovDec"
	for m := time.January; m <= time.December; m++ {
		if names[3*m-3:3*m] == text {
			return m
		}
	}
	return 0
}

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
	if t, ok = unixTime(text); ok {
		return t, z, true
	}
	d := dateText{text: dashes.Replace(text)}
	text = d.text
	for d.at < len(text) && !(d.clock.set && d.zoned && d.dated()) { // comments may follow the zone
		if !d.token() {
			return t, z, false
		}
	}
	return d.result()
}

// dashes makes the signs typographers prefer the one of dates.
var dashes = strings.NewReplacer("\u2010", "-", "\u2011", "-", "\u2012", "-", "\u2013", "-", "\u2014", "-", "\u2212", "-")

// unixTime reads a number of ten digits as seconds since 1970, and one of thirteen as
// milliseconds. One that is a date with its hour as well, such as 2033010112, has no sure meaning.
func unixTime(text string) (t time.Time, ok bool) {
	seconds, _, fraction := strings.Cut(text, ".")
	if strings.Trim(text, "0123456789.") != "" || len(seconds) != len("1556870400") && (fraction || len(seconds) != len("1556870400000")) {
		return t, false
	}
	n, err := strconv.ParseFloat(text, 64)
	if len(seconds) == len("1556870400000") {
		n /= 1000
	}
	if _, hour := time.Parse("2006010215", seconds); err != nil || hour == nil || n < 1e9 || n >= 1<<32 {
		return t, false
	}
	return time.UnixMilli(int64(math.Round(n * 1000))).UTC(), true
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
	case d.beginsNegative():
		return false
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
	case digits <= 2 && d.unit("時时시"):
		return d.cjkTime(value)
	case afterT && !d.clock.set:
		return d.compactTime(value, digits)
	case d.clock.set && d.dated() && value == 0 && (digits == 2 || digits == 4):
		d.zoned = true // 00 and 0000
		return true
	case d.clock.set && d.dated() && !d.zoned && digits == 4 && d.at == len(d.text) && value <= 1400 && value%100 < 60:
		d.zone, d.zoned = Zone{offset: value/100*3600 + value%100*60}, true // its sign is lost
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

// cjkTime reads the rest of a time after the hour and its sign.
func (d *dateText) cjkTime(hour int) bool {
	if d.clock.set {
		return false
	}
	d.clock = clock{hour: hour, set: true, half: d.clock.half}
	for _, part := range [...]struct {
		units string
		to    *int
	}{{"分분", &d.clock.minute}, {"秒초", &d.clock.second}} {
		before := d.at
		for d.next(' ', false) {
			d.at++
		}
		if value, digits := d.digits(); digits == 0 || digits > 2 || !d.unit(part.units) {
			d.at = before
			break
		} else {
			*part.to = value
		}
	}
	return true
}

// unit passes over one of the signs after a number of a time.
func (d *dateText) unit(units string) bool {
	sign, size := utf8.DecodeRuneInString(d.text[d.at:])
	if sign < 0x80 || !strings.ContainsRune(units, sign) {
		return false
	}
	d.at += size
	d.korean = d.korean || sign >= '가'
	return true
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

// beginsNegative reports whether the sign here is that of a year: PHP writes MySQL's
// zero date as 30 Nov -0001.
func (d *dateText) beginsNegative() bool {
	rest := d.text[d.at:]
	year := len(rest) > len("-000") && rest[0] == '-' && strings.Trim(rest[1:len("-0001")], "0123456789") == ""
	return year && d.at > 0 && !isDigit(d.text[d.at-1]) && !isLetter(d.text[d.at-1]) && d.text[d.at-1] < 0x80
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
		if hours, minutes = value/100, value%100; hours == 0 && digits == 3 { // -040: the last digit is missing
			hours, minutes = value/10, value%10*10
		}
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

// monthNames are the names of the months in English, which may be abbreviated to three
// letters, and then those of other languages of Europe that differ, in the forms dates have:
// Slavic and Finnish ones are inflected. "Listopada" is Polish; Croatian calls October so.
var monthNames = [...]string{
	"january januari janvier janv januar jänner ιαν január gennaio gen janeiro enero ene gener ianuarie ian jaanuar" +
		" января январь янв січня січень січ януари јануар stycznia styczeń sty ledna leden januára ocak oca tammikuuta tammikuu",
	"february februari février fevrier févr fevr fév fev februar φεβ február februári febbraio fevereiro febrero febrer februarie veebruar" +
		" февраля февраль фев февр лютого лютий лют февруари фебруар lutego luty lut února únor februára şubat subat şub helmikuuta helmikuu",
	"march maart mrt mars märz mär mrz μάώ μαώ μάρ μαρ március marzo março marco març marts martie mart märts" +
		" марта март мар березня березень бер marca marzec března březen marec maaliskuuta maaliskuu",
	"april avril avr απρ április aprile abril abr aprilie aprill" +
		" апреля апрель апр квітня квітень квіт април kwietnia kwiecień kwi dubna duben apríla apríl nisan nis huhtikuuta huhtikuu",
	"may mei mai μάι μαϊ μαι május maggio mag maio mayo maig maj" +
		" мая май травня травень трав мај maja května květen mája máj mayıs mayis toukokuuta toukokuu",
	"june juni juin ιούν ιον ιουν június giugno giu junho junio juny iunie iun juuni jun junij" +
		" июня июнь июн червня червень черв юни јун czerwca czerwiec cze června červen júna jún haziran haz kesäkuuta kesäkuu",
	"july juli juillet juil ιούλ ιολ ιουλ július luglio lug julho julio juliol iulie iul juuli julij" +
		" июля июль июл липня липень лип юли јул lipca lipiec lip července červenec júla júl temmuz tem heinäkuuta heinäkuu",
	"august augustus août aout αύγ αυγ augusztus agosto ago agost avgust" +
		" августа август авг серпня серпень серп sierpnia sierpień sie srpna srpen augusta ağustos agustos ağu elokuuta elokuu",
	"september septembre σεπ szeptember settembre setembro septiembre setiembre setembre set septembrie" +
		" сентября сентябрь сен сент вересня вересень вер септември септембар września wrzesień wrz září septembra eylül eylul eyl syyskuuta syyskuu",
	"october oktober okt octobre οκτ október ottobre ott outubro out octubre octombrie oktoober" +
		" октября октябрь окт жовтня жовтень жовт октомври октобар października październik paź října říjen októbra ekim eki lokakuuta lokakuu",
	"november novembre νοέ νοε novembro noviembre noiembrie noi" +
		" ноября ноябрь ноя нояб листопада листопад ноември новембар listopada listopad listopadu novembra kasım kasim kas marraskuuta marraskuu",
	"december décembre decembre déc dezember dez δεκ dicembre dic dezembro diciembre desember desembre des decembrie detsember" +
		" декабря декабрь дек грудня грудень груд декември децембар grudnia grudzień gru prosince prosinec decembra aralık aralik ara joulukuuta joulukuu",
}

// months are the numbers of the months by their names.
var months = sync.OnceValue(func() map[string]int {
	m := map[string]int{}
	for i, names := range monthNames {
		for n, name := range strings.Fields(names) {
			m[name] = i + 1
			for end := len("jan"); n == 0 && end < len(name); end++ {
				m[name[:end]] = i + 1
			}
		}
	}
	return m
})

const (
	weekdays = " mon monday tue tues tuesday wed weds wednesday thu thur thurs thursday fri friday sat saturday sun sunday" +
		" lunes martes miércoles jueves viernes sábado domingo lundi mardi mercredi jeudi vendredi samedi dimanche" +
		" montag dienstag mittwoch donnerstag freitag samstag sonnabend sonntag" +
		" понедельник вторник среда четверг пятница суббота воскресенье "
	ordinals = " st nd rd th er "
	fillers  = " at on of the um uhr de del di г года в "
)

func has(words, word string) bool { return strings.Contains(words, " "+word+" ") }

// word reads a word.
func (d *dateText) word() bool {
	start := d.at
	for d.at < len(d.text) && (d.text[d.at] >= 0x80 || isLetter(d.text[d.at]) || d.clock.set && strings.IndexByte("/_", d.text[d.at]) >= 0) {
		d.at++
	}
	word := d.text[start:d.at]
	lower := strings.ToLower(word)
	afterNumber := d.before == ofNumber
	d.before = otherText
	month := 0
	switch {
	case start == 0 && (d.next(',', false) || strings.HasPrefix(d.text[d.at:], ".,")), has(weekdays, lower): // in any language
	case lower == "t" && d.count > 0 && !d.clock.set && d.at < len(d.text) && isDigit(d.text[d.at]):
		d.before = isoT
	case lower == "t" && d.dated() && !d.clock.set && d.next(' ', true):
	case d.halfDay(lower), d.cjk(lower):
	case afterNumber && has(ordinals, lower):
	case !d.clock.set && has(fillers, lower), lower == "uhr":
	default:
		if month = months()[lower]; month == 0 {
			return d.zoneName(word, lower)
		}
		if d.month > 0 {
			return false
		}
		d.month = month
	}
	return true
}

// halfDay reads am, p.m. and similar words. In Korea they come before the time.
func (d *dateText) halfDay(lower string) bool {
	half := lower[0]
	switch lower {
	case "am", "pm":
	case "오전":
		half, d.korean = 'a', true
	case "오후":
		half, d.korean = 'p', true
	case "午前", "上午":
		half = 'a'
	case "午後", "下午":
		half = 'p'
	case "a", "p":
		if !strings.HasPrefix(strings.ToLower(d.text[d.at:]), ".m") {
			return false
		}
		d.at += len(".m")
	default:
		return false
	}
	if d.clock.half != 0 || !d.clock.set && half == lower[0] {
		return false
	}
	d.clock.half = half
	return true
}

// cjk reads the characters after a year, a month and a day.
func (d *dateText) cjk(word string) bool {
	switch word {
	case "년", "월", "일":
		d.korean = true
		return true
	case "年", "月", "日":
		return true
	}
	return false
}

// zoneName reads the name of a Zone, and the offset after it, if any.
func (d *dateText) zoneName(word, lower string) bool {
	if d.zoned || !d.clock.set && !d.dated() {
		return d.zoned
	}
	z, ok := namedZone(word, lower)
	if !ok {
		return false
	}
	named := d.at
	for d.next(' ', false) {
		d.at++
	}
	if d.beginsOffset() {
		ok = d.offset()
		if strings.HasPrefix(lower, "etc/") { // Etc/GMT+5 is five hours behind (POSIX)
			d.zone.offset *= -1
		}
		return ok
	}
	d.at = named
	d.zone, d.zoned = z, true
	return true
}

// A Zone is the meaning of a time zone's name.
type Zone struct {
	Name  string // as written; "" for an offset
	Doubt Doubt

	offset int            // seconds east of UTC
	place  *time.Location // for the name of a place, whose offset depends on the date
}

// A Doubt says how certain the meaning of a zone is.
type Doubt uint8

// The doubts about a zone.

const (
	Sure      Doubt = iota
	Ambiguous       // the most usual of several meanings
	Unknown         // no known meaning, so UTC is used (RFC 2822 §4.3)
)

// zoneNames are the zones of RFC 822 §5.1 and others in feeds, in minutes east
// of UTC.
var zoneNames = sync.OnceValue(func() map[string]int {
	return map[string]int{
		"z": 0, "ut": 0, "utc": 0, "gmt": 0, "uct": 0, "wet": 0,
		"est": -5 * 60, "edt": -4 * 60, "cst": -6 * 60, "cdt": -5 * 60,
		"mst": -7 * 60, "mdt": -6 * 60, "pst": -8 * 60, "pdt": -7 * 60,

		// Europe and Africa.
		"bst": 60, "west": 60, "cet": 60, "met": 60, "mez": 60,
		"cest": 120, "mest": 120, "mesz": 120, "eet": 120, "sast": 120, "cat": 120,
		"eest": 180, "msk": 180, "trt": 180, "eat": 180, "msd": 240, "samt": 240, "wat": 60,

		// Asia.
		"ast": -4 * 60, "idt": 180, "irst": 210, "irdt": 270, "gst": 240, "azt": 240, "get": 240,
		"pkt": 300, "uzt": 300, "yekt": 300, "ist": 330, "npt": 345, "bdt": 360, "omst": 360,
		"ict": 420, "wib": 420, "novt": 420, "krat": 420, "hkt": 480, "sgt": 480, "myt": 480, "pht": 480,
		"irkt": 480, "jst": 540, "kst": 540, "yakt": 540, "vlat": 600, "magt": 660, "pett": 720,

		// Australia and the Pacific.
		"awst": 480, "acst": 570, "acdt": 630, "aest": 600, "aedt": 660, "chst": 600,
		"nzst": 720, "nzdt": 780, "hst": -10 * 60, "sst": -11 * 60,

		// The Americas.
		"akst": -9 * 60, "akdt": -8 * 60, "adt": -3 * 60, "nst": -210, "ndt": -150,
		"brt": -3 * 60, "brst": -2 * 60, "art": -3 * 60, "uyt": -3 * 60, "clst": -3 * 60,
		"clt": -4 * 60, "bot": -4 * 60, "vet": -4 * 60, "cot": -5 * 60, "pet": -5 * 60,
		"et": -5 * 60, "ct": -6 * 60, "mt": -7 * 60, "pt": -8 * 60, "at": -4 * 60,
	}
})

// ambiguousZones have other meanings elsewhere (in China, Bangladesh, Ireland,
// Israel, Arabia …), or do not distinguish standard time from summer time.
const ambiguousZones = " cst bst ist ast gst sst bdt et ct mt pt at "

// namedZone returns the zone a name means; ok is false if it does not look like one.
func namedZone(name, lower string) (Zone, bool) {
	z := Zone{Name: name}
	lower = strings.TrimPrefix(lower, "etc/")
	if minutes, ok := zoneNames()[lower]; ok {
		z.offset = minutes * 60
		if strings.Contains(ambiguousZones, " "+lower+" ") {
			z.Doubt = Ambiguous
		}
		return z, true
	}
	if z.place = placeOf(name); z.place != nil {
		return z, true
	}
	// RFC 822 gave the military zone letters the wrong sign, so they are ambiguous. A word
	// in lower case is not a name.
	z.Doubt = Unknown
	for i := range len(name) {
		if c := name[i]; (c < 'A' || c > 'Z') && !strings.Contains(name, "/") {
			return Zone{}, false
		}
	}
	return z, len(name) != 2 && len(name) <= 5 || strings.Contains(name, "/")
}

// Location returns a location with the offset of the zone.
func (z Zone) Location() *time.Location {
	switch {
	case z.place != nil:
		return z.place
	case z.offset == 0:
		return time.UTC
	}
	return time.FixedZone("", z.offset)
}

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

// IsRFC3339 reports whether Atom allows the text as a date (RFC 4287 §3.3).
func IsRFC3339(text string) bool {
	if len(text) < len("2006-01-02T15:04:05Z") || text[10] != 'T' || text[len(text)-1] == 'z' {
		return false
	}
	_, err := time.Parse(time.RFC3339Nano, text)
	return err == nil && !strings.Contains(text, ",")
}

// IsRFC822 reports whether RSS allows the text as a date: its day of the week is right,
// and its year has four digits.
func IsRFC822(text string) bool {
	weekday, rest, dated := strings.Cut(text, ", ")
	if !dated {
		rest = text
	}
	shape := strings.Map(func(c rune) rune {
		if '0' <= c && c <= '9' {
			return '0'
		}
		return c
	}, rest)
	parts := strings.Split(shape, " ")
	if len(parts) != 5 || parts[0] != "0" && parts[0] != "00" || parts[2] != "0000" || parts[3] != "00:00" && parts[3] != "00:00:00" {
		return false
	}
	switch zone := rest[strings.LastIndexByte(rest, ' ')+1:]; parts[4] {
	case "UT", "GMT", "EST", "EDT", "CST", "CDT", "MST", "MDT", "PST", "PDT", "Z":
	case "+0000", "-0000":
		if zone[3] > '5' {
			return false
		}
	default:
		return false
	}
	t, z, ok := Read(text)
	t = t.In(z.Location())
	return ok && parts[1] == t.Month().String()[:3] && (!dated || weekday == t.Weekday().String()[:3])
}

// First returns the first nonzero time; the zero time if all are.
func First(times ...time.Time) time.Time {
	for _, t := range times {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}

// Later returns the later of two times.
func Later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
