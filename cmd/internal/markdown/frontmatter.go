package markdown

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"go.yaml.in/yaml/v3"
)

// A FrontMatter is the names and values before an article's text.
type FrontMatter map[string]any

// splitFrontMatter splits a text into its front matter, which is YAML between lines of
// "---" or TOML between lines of "+++", and its body. Without front matter, front is nil.
func splitFrontMatter(text []byte) (front FrontMatter, body []byte, err error) {
	text = bytes.ReplaceAll(bytes.TrimPrefix(text, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	fence := string(bytes.TrimRight(first, " \t"))
	if fence != "---" && fence != "+++" {
		return nil, text, nil
	}
	matter, body, ok := cutLine(rest, fence)
	if !ok {
		return nil, nil, fmt.Errorf("the front matter has no end: there is no second line %q", fence)
	}
	values := map[string]any{}
	if fence == "+++" {
		err = toml.Unmarshal(matter, &values)
	} else {
		err = yaml.Unmarshal(matter, &values)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the front matter: %w", err)
	}
	return values, body, nil
}

// cutLine cuts a text around a line.
func cutLine(text []byte, line string) (before, after []byte, ok bool) {
	for at := 0; at < len(text); {
		end := len(text)
		if n := bytes.IndexByte(text[at:], '\n'); n >= 0 {
			end = at + n + 1
		}
		if string(bytes.TrimRight(text[at:end], " \t\n")) == line {
			return text[:at], text[end:], true
		}
		at = end
	}
	return nil, nil, false
}

// text returns the first text or number among the named values; "" if there is none.
func (f FrontMatter) text(names ...string) string {
	for _, name := range names {
		switch v := f[name].(type) {
		case string:
			if v = strings.TrimSpace(v); v != "" {
				return v
			}
		case int, int64, uint64, float64:
			return fmt.Sprint(v)
		}
	}
	return ""
}

// list returns the items of all the named values, which are texts, lists of texts, or
// objects with a name.
func (f FrontMatter) list(names ...string) (list []string) {
	for _, name := range names {
		values, ok := f[name].([]any)
		if !ok {
			values = []any{f[name]}
		}
		for _, v := range values {
			one := FrontMatter{"name": v}
			if object, ok := v.(map[string]any); ok {
				one = object
			}
			if s := one.text("name"); s != "" {
				list = append(list, s)
			}
		}
	}
	return list
}

// dateLayouts are the layouts of dates in front matter, in addition to those YAML and
// TOML parse.
var dateLayouts = []string{
	time.RFC3339Nano, "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05 -07:00", "2006-01-02 15:04:05 MST",
	"2006-01-02 15:04 -0700", "2006-01-02T15:04:05", time.DateTime, "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly,
}

// time returns the first existing one of the named values; zero if there is none. A time
// without a zone is in the given one, so the result does not depend on the machine.
func (f FrontMatter) time(zone *time.Location, names ...string) (time.Time, error) {
	for _, name := range names {
		switch v := f[name].(type) {
		case time.Time:
			if strings.HasSuffix(v.Location().String(), "-local") { // TOML's times without zone
				v = time.Date(v.Year(), v.Month(), v.Day(), v.Hour(), v.Minute(), v.Second(), v.Nanosecond(), zone)
			}
			return v, nil
		case string:
			for _, layout := range dateLayouts {
				if t, err := time.ParseInLocation(layout, strings.TrimSpace(v), zone); err == nil {
					return t, nil
				}
			}
			return time.Time{}, errors.New(name + ": not a time such as 2003-12-13T18:30:02Z: " + v)
		}
	}
	return time.Time{}, nil
}
