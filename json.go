package feedhistory

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"time"
	"unicode/utf8"
)

// Texts, persons and gaps as JSON.

// short reads a string as the abbreviation of an object.
func short(data []byte, s *string, object any) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		return json.Unmarshal(data, s)
	}
	return json.Unmarshal(data, object)
}

// unescapedJSON returns JSON in which markup is not escaped; the encoder of the whole
// value decides about escapes.
func unescapedJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// A textJSON is a text with a type.
type textJSON struct {
	Type   string `json:"type,omitempty"`
	Body   string `json:"body,omitempty"`
	Base64 []byte `json:"base64,omitempty"` // the body if it is not text
	Src    string `json:"src,omitempty"`
	Base   string `json:"base,omitempty"`
	Lang   string `json:"lang,omitempty"`
}

// MarshalJSON returns an object, or a string for plain text without more. A body other
// than UTF-8 is in the member base64.
func (t Text) MarshalJSON() ([]byte, error) {
	if !utf8.ValidString(t.Body) {
		return unescapedJSON(textJSON{Type: t.Type, Base64: []byte(t.Body), Src: t.Src, Base: t.Base, Lang: t.Lang})
	}
	if (t.Type == "" || t.Type == textPlain) && t.Src+t.Base+t.Lang == "" {
		return unescapedJSON(t.Body)
	}
	return unescapedJSON(textJSON{Type: t.Type, Body: t.Body, Src: t.Src, Base: t.Base, Lang: t.Lang})
}

// UnmarshalJSON reads the JSON of MarshalJSON.
func (t *Text) UnmarshalJSON(data []byte) error {
	j := textJSON{Type: t.Type}
	if err := short(data, &j.Body, &j); err != nil {
		return err
	}
	*t = Text{Type: j.Type, Body: cmp.Or(j.Body, string(j.Base64)), Src: j.Src, Base: j.Base, Lang: j.Lang}
	return nil
}

// UnmarshalJSON reads an object, or a string, which is the name.
func (p *Person) UnmarshalJSON(data []byte) error {
	type plain Person
	return short(data, &p.Name, (*plain)(p))
}

// A gapJSON is a gap as json.Marshal writes it.
type gapJSON struct {
	URL      string    `json:"url"`
	From     string    `json:"from,omitempty"`
	Reason   Reason    `json:"reason"`
	Declared string    `json:"declared,omitempty"` // the publisher's own word for the reason
	Message  string    `json:"message,omitempty"`
	Found    time.Time `json:"found,omitzero"`
}

// MarshalJSON returns the gap without its Document. Of Err it has the text, without the
// gap's URL.
func (g Gap) MarshalJSON() ([]byte, error) {
	j := gapJSON{URL: g.URL, From: g.From, Reason: Reason(g.Reason.word()), Found: g.Found}
	if word, ok := errors.AsType[declaredGap](g.Err); ok {
		j.Declared = string(word)
	}
	j.Message = g.detail()
	return unescapedJSON(j)
}

// UnmarshalJSON reads the JSON of MarshalJSON. Error returns the same text, but Err has
// not the same type.
func (g *Gap) UnmarshalJSON(data []byte) error {
	var j gapJSON
	if err := json.Unmarshal(data, &j); err != nil {
		return err
	}
	*g = Gap{URL: j.URL, From: j.From, Reason: cmp.Or(j.Reason, ReasonUnknown), Found: j.Found}
	if g.Err = errors.New(cmp.Or(j.Message, string(g.Reason))); j.Declared != "" {
		g.Err = declaredGap(j.Declared)
	}
	return nil
}
