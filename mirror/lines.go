package mirror

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/feedhistory/feedhistory/publish"
)

// The lines of Export and Import. The type of a line is "feed", "gap", "document",
// "entry" or "end"; a line without a type is an entry. The lines of a feed follow each
// other, beginning with the one of type "feed". The last line of all has the type "end".
type (
	endLine struct {
		Type string `json:"type"`
	}
	line struct {
		Type string `json:"type"`
		Feed string `json:"feed"`
	}
	feedLine struct {
		line
		Version int64 `json:"version,omitempty"` // how many times the feed has changed in its store
		Private bool  `json:"private,omitempty"` // the feed was read with credentials, which no line has
		State   *Feed `json:"state"`             // without the gaps, which have their own lines
	}
	gapLine struct {
		line
		Gap     *GapRecord       `json:"gap,omitempty"`
		Pending *PendingDocument `json:"pending,omitempty"`
	}
	documentLine struct {
		line
		Document *DocumentRecord `json:"document"`
	}
	entryLine struct {
		publish.Line
		Mirror   *Record    `json:"mirror,omitempty"` // without the text, which is in raw; absent if the entry comes from elsewhere
		Versions []*Version `json:"versions,omitempty"`
	}
)

const lineEnd = "end"

// A LineError says why Import cannot use a line.
type LineError struct {
	Line int // the number of the line, counted from 1
	Err  error
}

// Error returns the number of the line, and the reason.
func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }

// Unwrap returns Err.
func (e *LineError) Unwrap() error { return e.Err }

// unescaped returns JSON in which markup is not escaped. The encoder of the
// whole value may still escape it.
func unescaped(value any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(value)
	return b.Bytes(), err
}

// writeLine writes a value as a line of JSON, by one call of Write.
func writeLine(w io.Writer, value any) error {
	text, err := unescaped(value)
	if err == nil {
		_, err = w.Write(text)
	}
	return err
}

func utc(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC()
}
