package conformance

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/feedhistory/feedhistory"
)

// A Result is what a reader tells of one case, or of one poll of it. Only the
// entries are needed; what is not told is not judged.
type Result struct {
	Entries []Entry  // all that the reader has of the feed
	Verdict string   // whole, window, lossy or partial; "" where it is not told
	Gaps    []string // the addresses that are missing; nil where they are not told
	Deleted []string // the ids of deleted entries; nil where they are not told
	Failed  bool     // the reader says that there is no feed
}

// An Entry is an entry that a reader tells of.
type Entry struct {
	ID    string
	Title string // "" where it is not told
}

// The JSON that a reader prints: one object, or a line for each entry.
type told struct {
	Entries list   `json:"entries"`
	Verdict string `json:"verdict"`
	Gaps    list   `json:"gaps"`
	Deleted list   `json:"deleted"`
	Failed  bool   `json:"failed"`

	ID    string `json:"id"` // a line that is an entry
	Title title  `json:"title"`
}

// A title is a string, or an object with the type of the text and its body, as
// feedhistory prints those that are not plain.
type title string

// UnmarshalJSON reads a title.
func (t *title) UnmarshalJSON(data []byte) error {
	if !bytes.HasPrefix(data, []byte("{")) {
		return json.Unmarshal(data, (*string)(t))
	}
	var text struct{ Type, Body string }
	err := json.Unmarshal(data, &text)
	*t = title(feedhistory.Text{Type: text.Type, Body: text.Body}.Plain())
	return err
}

// A list of strings, or of objects of which one field names them; nil where
// there is none. Whatever else it may be is another program's business: sync
// counts its deletions.
type list []Entry

// UnmarshalJSON reads a list.
func (l *list) UnmarshalJSON(data []byte) error {
	if !bytes.HasPrefix(data, []byte("[")) {
		return nil
	}
	var items []json.RawMessage
	if err := json.Unmarshal(data, &items); err != nil {
		return err
	}
	*l = make(list, len(items))
	for i, item := range items {
		var object struct {
			ID, URL, Ref string
			Title        title
		}
		err := json.Unmarshal(item, &object.ID)
		if err != nil {
			err = json.Unmarshal(item, &object)
		}
		if err != nil {
			return err
		}
		(*l)[i] = Entry{cmp.Or(object.ID, object.Ref, object.URL), string(object.Title)}
	}
	return nil
}

func (l list) names() []string {
	if l == nil {
		return nil
	}
	names := make([]string, len(l))
	for i, e := range l {
		names[i] = e.ID
	}
	return names
}

// errNothing is what a reader ends with that has printed nothing.
var errNothing = errors.New("no JSON was printed")

// ReadResult reads what a reader prints: a JSON object with "entries" and, where
// it tells of them, "verdict", "gaps" and "deleted"; or a line of JSON for each
// entry, with its "id" and "title", and one with the verdict, if any.
func ReadResult(r io.Reader) (*Result, error) {
	result, decoder := &Result{}, json.NewDecoder(r)
	for n := 0; ; n++ {
		var t told
		err := decoder.Decode(&t)
		if errors.Is(err, io.EOF) {
			if n == 0 {
				return nil, errNothing
			}
			return result, nil
		}
		if err != nil {
			return nil, fmt.Errorf("what was printed is not the JSON that is asked for: %w", err)
		}
		if t.ID != "" {
			result.Entries = append(result.Entries, Entry{t.ID, string(t.Title)})
		}
		result.Entries = append(result.Entries, t.Entries...)
		result.Verdict = cmp.Or(t.Verdict, result.Verdict)
		result.Failed = result.Failed || t.Failed
		if t.Gaps != nil {
			result.Gaps = append(t.Gaps.names(), result.Gaps...)
		}
		if t.Deleted != nil {
			result.Deleted = append(t.Deleted.names(), result.Deleted...)
		}
	}
}
