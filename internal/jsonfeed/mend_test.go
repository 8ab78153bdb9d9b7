package jsonfeed

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var mistakes = map[string]struct{ text, want string }{
	"raw newline":           {"{\"a\":\"b\nc\td\re\x01\"}", `{"a":"b\nc\td\re\u0001"}`},
	"raw newline in a name": {"{\"a\nb\":1}", `{"a\nb":1}`},
	"trailing commas":       {`{"a":[1,2,],"b":{"c":1 , } ,}`, `{"a":[1,2],"b":{"c":1  } }`},
	"comma and comment":     {`{"a":[1, /* two */ ]}`, `{"a":[1   ]}`},
	"commas":                {`{"a":[,1,,2]}`, `{"a":[1,2]}`},
	"missing commas":        {"{\"a\":[{} {}]\n\"b\":\"c\"\n\"d\":1 \"e\":2}", "{\"a\":[{} ,{}]\n,\"b\":\"c\"\n,\"d\":1 ,\"e\":2}"},
	"comments":              {"{// one, \"two\"\n\"a\":/* { */1 // three\n}//", "{ \n\"a\": 1  \n} "},
	"comment sign in text":  {`{"a":"http://b/*",}`, `{"a":"http://b/*"}`},
	"escapes":               {`{"a":"\'\x41\d\u12\_\é\u0041\/"}`, `{"a":"'\u0041\\d\\u12\\_\\é\u0041\/"}`},
	"quotes":                {`{"a":"He said "hi", loudly.","b":["so "they" say",1],"c":["x", "y"]}`, `{"a":"He said \"hi\", loudly.","b":["so \"they\" say",1],"c":["x", "y"]}`},
	"literals":              {`{"a":True,"b":None,"c":NaN,"d":-Infinity,"e":undefined}`, `{"a":true,"b":null,"c":null,"d":null,"e":null}`},
	"numbers":               {`{"id":007,"b":+1,"c":.5,"d":0x1F,"e":-0.5e+3}`, `{"id":"007","b":"+1","c":".5","d":"0x1F","e":-0.5e+3}`},
	"after the end":         {`{"a":1};`, `{"a":1}`},
	"second value":          {"{\"a\":1}\n{}", "{\"a\":1}\n"},
}

func TestMend(t *testing.T) {
	for name, m := range mistakes {
		t.Run(name, func(t *testing.T) {
			require.False(t, json.Valid([]byte(m.text)))
			got := Mend(m.text)
			require.Equal(t, m.want, got.Text)
			require.True(t, got.Whole)
			require.NotEmpty(t, got.Notes)
			require.True(t, json.Valid([]byte(got.Text)), got.Text)
			testPlaces(t, m.text, got)
		})
	}
}

// testPlaces checks that letters are found at their places in the original.
func testPlaces(t require.TestingT, text string, got *Mended) {
	for i := range len(got.Text) {
		at := got.Original(i)
		require.True(t, at >= 0 && at <= len(text), "%d: %d", i, at)
		if c := got.Text[i]; c > 0x7f {
			require.Equal(t, c, text[at])
		}
	}
	require.LessOrEqual(t, got.Original(len(got.Text)), len(text))
}

func TestOriginal(t *testing.T) {
	text := "{\"a\":\"x\ny\",\n\"b\":[1,],\"c\":2}"
	got := Mend(text)
	require.Len(t, got.Notes, 2)
	require.Equal(t, strings.Index(text, "\n"), got.Notes[0].Offset)
	require.Equal(t, strings.Index(text, ",]"), got.Notes[1].Offset)
	for _, part := range []string{`"a"`, `"b"`, `"c"`, `y`, `]`} {
		require.Equal(t, strings.Index(text, part), got.Original(strings.Index(got.Text, part)), part)
	}
	require.Equal(t, 7, new(Mended).Original(7))
}

// Damage that is no known mistake ends the mending.
func TestHopeless(t *testing.T) {
	for _, text := range []string{
		"", " ", "{", `{"a`, `{"a":`, `{"a":[1}`, `{"a":1]`, `{a:1}`, `{"a":what}`, `{'a':1}`, `{"a" 1}`, `{"a":,}`, `]`, `,`, `{"a":1,/*`,
		`{"a":"\`, strings.Repeat("[", maxDepth+1), "{\"a\":\"b\n",
		"{\"title\":\"abc,\n\"url\":\"x\"}", // a name must not be taken for text
	} {
		require.False(t, Mend(text).Whole, text)
	}
	many := Mend(`["` + strings.Repeat("\n", maxEdits+1) + `"]`)
	require.False(t, many.Whole)
	require.Len(t, many.Notes, maxNotes)
}

// Mended text is well-formed, and sound text stays as it is.
func FuzzMend(f *testing.F) {
	for _, m := range mistakes {
		f.Add(m.text)
		f.Add(m.want)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Mend(text)
		if json.Valid([]byte(text)) && !tooDeep(text) {
			require.Equal(t, &Mended{Text: text, Whole: true}, got)
		}
		if got.Whole {
			require.True(t, json.Valid([]byte(got.Text)), "%q", got.Text)
			again := Mend(got.Text)
			require.Empty(t, again.Notes, "%q", got.Text)
		}
		require.LessOrEqual(t, len(got.Text), 6*len(text)+1)
		testPlaces(t, text, got)
	})
}

func tooDeep(text string) bool {
	d := json.NewDecoder(strings.NewReader(text))
	for depth := 0; ; {
		switch token, err := d.Token(); {
		case err == io.EOF:
			return false
		case token == json.Delim('[') || token == json.Delim('{'):
			if depth++; depth > maxDepth {
				return true
			}
		case token == json.Delim(']') || token == json.Delim('}'):
			depth--
		}
	}
}
