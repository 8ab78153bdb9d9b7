package jsonfeed

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

func TestReadItem(t *testing.T) {
	for text, want := range map[string]Item{
		`{"id":"right","ID":"wrong"}`:               {ID: "right"},
		`{"ID":"wrong","id":"right","iD":"x"}`:      {ID: "right"},
		`{"\u0069d":"right","\u0049D":"wrong"}`:     {ID: "right"},
		`{"Id":"wrong"}`:                            {},
		`{"id":"a\"Id\":"}`:                         {ID: `a"Id":`},
		`{"id":"one","id":" two "}`:                 {ID: "two"},
		`{"id":120000000000000000001.50}`:           {ID: "120000000000000000001.50"},
		`{"id":null,"url":null}`:                    {},
		`{"id":{},"url":[],"external_url":"u"}`:     {ExternalURL: "u"},
		`{"tags":["a",1,"b"],"image":"i"}`:          {Tags: []string{"a", "b"}, Image: "i"},
		`{"author":{"name":"n","Name":"x"}}`:        {Author: Author{Name: "n"}},
		`{"authors":[{"name":"n"},null],"tags":{}}`: {Authors: []Author{{Name: "n"}, {}}},
		`{"authors":null}`:                          {},
		`{"attachments":[{"url":"u","mime_type":"m","title":"t","size_in_bytes":12}]}`: {Attachments: []Attachment{{"u", "m", "t", 12, 0}}},
		`{"attachments":[{"size_in_bytes":1e999}]}`:                                    {Attachments: []Attachment{{}}},
		`{"title":"t","summary":"","content_text":"c"}`:                                {Places: Places{Title: 9, Content: 41}},
		`{"content_html":"h","content_text":"c"}`:                                      {Places: Places{Content: 16, IsHTML: true}},
		`{"content_html":"","content_text":"c"}`:                                       {Places: Places{Content: 34}},
		`{}`:                                                                           {}, `[]`: {}, `1`: {},
	} {
		require.Equal(t, &want, ReadItem(text), text)
	}
}

func TestItem(t *testing.T) {
	text := ` {"items": [ {"id":"1", "title":["x"], "tags":"t","other":{"id":[]}} , null, {} ,{"id":2,"title":"two"}]} `
	var notes, raw, titles []string
	r := New(text, func(message string, _ int) { notes = append(notes, message) })
	for name := range r.Members() {
		require.Equal(t, "items", name)
		for range r.Elements() {
			var item Item
			if one := r.Item(&item); one != "" {
				raw = append(raw, one)
				if at := item.Places.Title; at > 0 {
					titles = append(titles, StringAt(one, at))
				}
			}
		}
	}
	r.End()
	require.NoError(t, r.Err())
	require.Equal(t, []string{`{"id":"1", "title":["x"], "tags":"t","other":{"id":[]}}`, `{}`, `{"id":2,"title":"two"}`}, raw)
	require.Equal(t, []string{"two"}, titles)
	require.Equal(t, []string{`"title" is an array instead of a string`, `"tags" is a string instead of an array`, "an item is not an object"}, notes)
}

func TestErrors(t *testing.T) {
	for text, want := range map[string]struct {
		offset    int
		truncated bool
	}{
		`{"id":"1"} x`:        {10, false},
		`{"id":"1",}`:         {9, false},
		"{\"id\":\"\n\"}":     {7, false},
		`{"id":"1"`:           {9, true},
		`{"id":`:              {6, true},
		`{"title":"\q"}`:      {10, false},
		`{"id":"1" "url":"2"`: {10, false},
	} {
		r := New(text, func(string, int) {})
		r.item(new(Item), false)
		r.End()
		var syntax *SyntaxError
		require.ErrorAs(t, r.Err(), &syntax, text)
		require.Equal(t, want.offset, syntax.Offset, text)
		require.Equal(t, want.truncated, syntax.Err == io.ErrUnexpectedEOF, text)
		require.NotContains(t, syntax.Error(), "offset")
	}
	r := New(strings.Repeat(`{"a":`, 20_000), func(string, int) {})
	r.item(new(Item), false)
	require.Error(t, r.Err())
}

// StringAt agrees with encoding/json.
func FuzzStringAt(f *testing.F) {
	for _, s := range []string{`"a"`, `"a\"b\\"`, `"\u00e9\ud83d\ude00\ud83d\n\/"`, `"\ud83d\u0041"`, `"\\\\\"\\"`, `""`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var want string
		if strings.HasPrefix(text, `"`) && utf8.ValidString(text) && json.Unmarshal([]byte(text), &want) == nil {
			require.Equal(t, want, StringAt("{"+text+"}", 1))
		}
	})
}
