package feedtime

import (
	"slices"
	"strings"
)

// monthNames are the names of the months in English, which may be abbreviated,
// and then those in Dutch, French, German, Greek, Hungarian, Italian,
// Portuguese and Spanish that differ.
var monthNames = [...][]string{
	{"january", "januari", "janvier", "janv", "januar", "jänner", "ιαν", "január", "gennaio", "gen", "janeiro", "enero", "ene"},
	{"february", "februari", "février", "fevrier", "févr", "fevr", "fév", "fev", "februar", "φεβ", "február", "februári",
		"febbraio", "fevereiro", "febrero"},
	{"march", "maart", "mrt", "mars", "märz", "mär", "mrz", "μάώ", "μαώ", "μάρ", "μαρ", "március", "marzo", "março", "marco"},
	{"april", "avril", "avr", "απρ", "április", "aprile", "abril", "abr"},
	{"may", "mei", "mai", "μάι", "μαϊ", "μαι", "május", "maggio", "mag", "maio", "mayo"},
	{"june", "juni", "juin", "ιούν", "ιον", "ιουν", "június", "giugno", "giu", "junho", "junio"},
	{"july", "juli", "juillet", "juil", "ιούλ", "ιολ", "ιουλ", "július", "luglio", "lug", "julho", "julio"},
	{"august", "augustus", "août", "aout", "αύγ", "αυγ", "augusztus", "agosto", "ago"},
	{"september", "septembre", "σεπ", "szeptember", "settembre", "setembro", "septiembre", "setiembre", "set"},
	{"october", "oktober", "okt", "octobre", "οκτ", "október", "ottobre", "ott", "outubro", "out", "octubre"},
	{"november", "novembre", "νοέ", "νοε", "novembro", "noviembre"},
	{"december", "décembre", "decembre", "déc", "dezember", "dez", "δεκ", "dicembre", "dic", "dezembro", "diciembre"},
}

// monthOf returns the month a word names, zero for none.
func monthOf(lower string) int {
	for i, names := range monthNames {
		if len(lower) >= 3 && strings.HasPrefix(names[0], lower) {
			return i + 1
		}
		if slices.Contains(names[1:], lower) {
			return i + 1
		}
	}
	return 0
}

const (
	weekdays = " mon monday tue tues tuesday wed weds wednesday thu thur thurs thursday fri friday sat saturday sun sunday "
	ordinals = " st nd rd th "
	fillers  = " at on of the um uhr "
)

func has(words, word string) bool { return strings.Contains(words, " "+word+" ") }

// word reads a word.
func (d *dateText) word() bool {
	start := d.at
	for d.at < len(d.text) && (d.text[d.at] >= 0x80 || isLetter(d.text[d.at]) || d.clock.set && d.text[d.at] == '/') {
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
	case d.halfDay(lower), d.cjk(lower):
	case afterNumber && has(ordinals, lower):
	case !d.clock.set && has(fillers, lower), lower == "uhr":
	default:
		if month = monthOf(lower); month == 0 {
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
	case "a", "p":
		if !strings.HasPrefix(strings.ToLower(d.text[d.at:]), ".m") {
			return false
		}
		d.at += len(".m")
	default:
		return false
	}
	if d.clock.half != 0 || !d.clock.set && !d.korean {
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
