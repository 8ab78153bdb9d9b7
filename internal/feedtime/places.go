package feedtime

import (
	"compress/flate"
	_ "embed" // the files of places
	"encoding/base64"
	"encoding/binary"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
)

// placeNames are the names by place, of the IANA's database, that feeds have. A list bounds the
// cost of looking names up.
var placeNames = strings.Fields(`
	Africa/Cairo Africa/Johannesburg Africa/Lagos Africa/Nairobi America/Argentina/Buenos_Aires America/Bogota
	America/Chicago America/Denver America/Los_Angeles America/Mexico_City America/New_York America/Sao_Paulo
	America/Toronto America/Vancouver Asia/Bangkok Asia/Calcutta Asia/Dubai Asia/Hong_Kong Asia/Jakarta
	Asia/Jerusalem Asia/Kolkata Asia/Seoul Asia/Shanghai Asia/Singapore Asia/Taipei Asia/Tehran Asia/Tokyo
	Australia/Brisbane Australia/Melbourne Australia/Perth Australia/Sydney Europe/Amsterdam Europe/Athens
	Europe/Berlin Europe/Brussels Europe/Bucharest Europe/Budapest Europe/Copenhagen Europe/Dublin Europe/Helsinki
	Europe/Istanbul Europe/Kiev Europe/Kyiv Europe/Lisbon Europe/London Europe/Madrid Europe/Moscow Europe/Oslo
	Europe/Paris Europe/Prague Europe/Rome Europe/Stockholm Europe/Vienna Europe/Warsaw Europe/Zurich
	Pacific/Auckland US/Central US/Eastern US/Pacific`)

// places are the locations looked up so far, by their names.
var places sync.Map

// placeFiles returns the files of placeNames in the IANA's database, for machines without it: the
// same date has one meaning on all machines. They have a twentieth of the size of package
// time/tzdata, which has all places.
var placeFiles = sync.OnceValue(func() map[string][]byte {
	files := map[string][]byte{}
	data, _ := io.ReadAll(flate.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(placesText))))
	for _, name := range placeNames {
		if len(data) < 2 {
			break
		}
		size := 2 + int(binary.BigEndian.Uint16(data))
		files[name], data = data[2:size], data[size:]
	}
	return files
})

// placesText is the files one after another, each after its length, compressed.
//
//go:embed places.txt
var placesText string

// placeOf returns the location with a name; nil if the name is not in placeNames.
func placeOf(name string) *time.Location {
	if known, ok := places.Load(name); ok {
		return known.(*time.Location)
	}
	if !slices.Contains(placeNames, name) {
		return nil
	}
	place, err := time.LoadLocation(name) // its rules may be newer than those here
	if err != nil {
		place, _ = time.LoadLocationFromTZData(name, placeFiles()[name]) // TestPlaces reads all
	}
	places.Store(name, place)
	return place
}
