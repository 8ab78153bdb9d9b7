package feedtime

import (
	"strings"
	"time"
)

// A Zone is the meaning of a time zone's name.
type Zone struct {
	Name  string // as written; "" for an offset
	Doubt Doubt

	offset int // seconds east of UTC
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
var zoneNames = map[string]int{
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

// ambiguousZones have other meanings elsewhere (in China, Bangladesh, Ireland,
// Israel, Arabia …), or do not distinguish standard time from summer time.
const ambiguousZones = " cst bst ist ast gst sst bdt et ct mt pt at "

// namedZone returns the zone a name means; ok is false if it does not look like one.
func namedZone(name, lower string) (Zone, bool) {
	z := Zone{Name: name}
	lower = strings.TrimPrefix(lower, "etc/")
	if minutes, ok := zoneNames[lower]; ok {
		z.offset = minutes * 60
		if strings.Contains(ambiguousZones, " "+lower+" ") {
			z.Doubt = Ambiguous
		}
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
	if z.offset == 0 {
		return time.UTC
	}
	return time.FixedZone("", z.offset)
}
