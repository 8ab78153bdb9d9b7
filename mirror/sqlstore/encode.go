package sqlstore

import (
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"reflect"
	"strings"
	"time"
)

// Text is escaped so it may contain NUL, which PostgreSQL refuses and at which SQLite's
// tools cut text: \x00 becomes \x01\x01, and \x01 becomes \x01\x02. This keeps the
// order.
var (
	escaper   = strings.NewReplacer("\x00", "\x01\x01", "\x01", "\x01\x02")
	unescaper = strings.NewReplacer("\x01\x01", "\x00", "\x01\x02", "\x01")
)

func escaped(s string) string {
	if strings.IndexByte(s, 0) < 0 && strings.IndexByte(s, 1) < 0 {
		return s
	}
	return escaper.Replace(s)
}

func unescaped(s string) string {
	if strings.IndexByte(s, 1) < 0 {
		return s
	}
	return unescaper.Replace(s)
}

// longest is the maximum length of an ID or URL in an index, in bytes:
// PostgreSQL allows 2,704 for all columns together.
const longest = 1000

// A name is an ID or a URL. Its key is used to find it: the name itself or, if that is
// too long, its beginning and a digest, which together are longer than any name as its
// own key. The database then has the whole name in a separate column.
type name struct {
	key  string
	long sql.NullString
}

func nameOf(s string) name {
	s = escaped(s)
	if len(s) <= longest {
		return name{key: s}
	}
	sum := sha256.Sum256([]byte(s))
	begin := strings.ToValidUTF8(s[:longest], "")
	return name{key: begin + "…" + hex.EncodeToString(sum[:]), long: sql.NullString{String: s, Valid: true}}
}

func keyOf(s string) string { return nameOf(s).key }

func keysOf(names []string) []string {
	keys := make([]string, len(names))
	for i, s := range names {
		keys[i] = keyOf(s)
	}
	return keys
}

// layout is the layout of times in columns: in UTC, with nanoseconds, so times sort as
// text. The zero time is "".
const layout = "2006-01-02T15:04:05.000000000Z"

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	switch t = t.UTC(); {
	case t.Year() < 0:
		return "0000-01-01T00:00:00.000000000Z"
	case t.Year() > 9999:
		return "9999-12-31T23:59:59.999999999Z"
	}
	return t.Format(layout)
}

// A timeColumn scans a time.
type timeColumn struct{ *time.Time }

// Scan implements sql.Scanner.
func (c timeColumn) Scan(src any) (err error) {
	text, _ := src.(string)
	if text == "" {
		*c.Time = time.Time{}
		return nil
	}
	*c.Time, err = time.Parse(layout, text)
	return err
}

// A textColumn scans escaped text.
type textColumn struct{ *string }

// Scan implements sql.Scanner.
func (c textColumn) Scan(src any) error {
	text, _ := src.(string)
	*c.string = unescaped(text)
	return nil
}

// inUTC returns a copy of a value with all times in UTC, because JSON refuses
// extreme offsets such as +24:00.
func inUTC[T any](v *T) *T {
	twin := reflect.New(reflect.TypeFor[T]()).Elem()
	twin.Set(reflect.ValueOf(v).Elem())
	toUTC(twin)
	return twin.Addr().Interface().(*T)
}

func toUTC(v reflect.Value) {
	if t, ok := v.Interface().(time.Time); ok {
		v.Set(reflect.ValueOf(t.UTC()))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			toUTC(field)
		}
	case reflect.Slice:
		if v.IsNil() || v.Type().Elem().Kind() != reflect.Struct {
			return
		}
		list := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		reflect.Copy(list, v)
		for i := range list.Len() {
			toUTC(list.Index(i))
		}
		v.Set(list)
	}
}
