package terminal

import (
	"bytes"
	"encoding/json"
	"io"
)

// A JSONFlag is the flag --json of a verb. Its tag names a record in the help:
// `set:"record=each feed"`.
type JSONFlag struct {
	JSON bool `name:"json" help:"Print JSON Lines (one object a line): ${record}."`
}

// WriteJSON writes a value as a line of JSON Lines.
func WriteJSON(w io.Writer, value any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		return err
	}
	_, err := w.Write(JSON(b.Bytes()))
	return err
}
