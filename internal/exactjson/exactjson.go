// Package exactjson unmarshals JSON by the exact names of its members:
// encoding/json takes "ID" for "id" if both are present.
package exactjson

import (
	"bytes"
	"encoding/json"
	"strings"
)

// Unmarshal is json.Unmarshal for formats, such as JSON Feed, whose names consist
// of small letters, digits and underscores. It ignores members with other names.
func Unmarshal(raw string, into any) error {
	data := []byte(raw)
	if hasOddNames(raw) {
		var value any
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber() // an id may be a number, which must stay as written
		if err := d.Decode(&value); err != nil {
			return err
		}
		withoutOddNames(value)
		data, _ = json.Marshal(value) // which cannot fail for values from JSON
	}
	return json.Unmarshal(data, into)
}

// isOddName reports whether a name has characters other than small letters, digits and
// underscores.
func isOddName(name string) bool {
	return strings.ContainsFunc(name, func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '_' })
}

// hasOddNames looks for such a name among a value's members.
func hasOddNames(raw string) bool {
	for {
		i := strings.IndexByte(raw, '"')
		if i < 0 {
			return false
		}
		raw = raw[i+1:]
		end := endOfString(raw)
		name, rest := raw[:end], strings.TrimLeft(raw[min(end+1, len(raw)):], " \t\r\n")
		if strings.HasPrefix(rest, ":") && isOddName(name) {
			return true
		}
		raw = rest
	}
}

// endOfString returns the offset of a string's closing quote.
func endOfString(s string) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			return i
		case '\\':
			i++
		}
	}
	return len(s)
}

// withoutOddNames removes the members with such a name.
func withoutOddNames(value any) {
	switch value := value.(type) {
	case map[string]any:
		for name, member := range value {
			if isOddName(name) {
				delete(value, name)
			} else {
				withoutOddNames(member)
			}
		}
	case []any:
		for _, element := range value {
			withoutOddNames(element)
		}
	}
}
