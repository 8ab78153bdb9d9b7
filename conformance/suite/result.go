package suite

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/feedhistory/feedhistory"
)

// A Result is a reader's report on one case, or on one poll of it. Only the entries are
// required; the suite does not judge anything left out.
type Result struct {
	Entries []ReaderEntry // all entries the reader has of the feed
	Verdict string        // whole, window, lossy or partial; "" if not reported
	Gaps    []string      // the missing addresses; nil if not reported
	Deleted []string      // the ids of deleted entries; nil if not reported
	Failed  bool          // the reader reports no feed at all
}

// A ReaderEntry is an entry as a reader reports it.
type ReaderEntry struct {
	ID    string
	Title string // "" if not reported
}

// A readerOutput is the JSON a reader prints: one object, or a line for each entry.
type readerOutput struct {
	Entries list   `json:"entries"`
	Verdict string `json:"verdict"`
	Gaps    list   `json:"gaps"`
	Deleted list   `json:"deleted"`
	Failed  bool   `json:"failed"`

	ID    string `json:"id"` // for a line of an entry
	Title title  `json:"title"`
}

// A title is a string, or an object with the type and the body of the text,
// which feedhistory prints if the title is not plain text.
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

// A list is a list of strings, or of objects with an id, a ref or a url; nil if
// there is none. It ignores any other value: sync prints the number of deletions
// there.
type list []ReaderEntry

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
		(*l)[i] = ReaderEntry{cmp.Or(object.ID, object.Ref, object.URL), string(object.Title)}
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

// errNothing means a reader has printed nothing.
var errNothing = errors.New("no JSON was printed")

// readResult reads the output of a reader: a JSON object with "entries" and, if
// the reader reports them, "verdict", "gaps" and "deleted"; or a line of JSON
// for each entry with its "id" and "title", and one with the verdict, if any.
func readResult(r io.Reader) (*Result, error) {
	result, decoder := &Result{}, json.NewDecoder(r)
	for n := 0; ; n++ {
		var t readerOutput
		err := decoder.Decode(&t)
		if errors.Is(err, io.EOF) {
			if n == 0 {
				return nil, errNothing
			}
			return result, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the output is not the expected JSON: %w", err)
		}
		if t.ID != "" {
			result.Entries = append(result.Entries, ReaderEntry{t.ID, string(t.Title)})
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
