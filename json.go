package feedhistory

import (
	"bytes"
	"cmp"
	"encoding/json"
	"unicode/utf8"
)

// Texts and persons as JSON.

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
