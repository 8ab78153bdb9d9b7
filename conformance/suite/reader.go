package suite

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

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

// mostPrinted is the maximum size of a program's output in bytes.
const mostPrinted = 64 << 20

// mostTold is how much of a program's standard error a runError keeps, in bytes.
const mostTold = 2 << 10

// A runError is a program's run without a result.
type runError struct {
	Reason string // such as "exit status 1"
	Stderr string // the end of its standard error
	Exited bool   // it printed nothing and exited with a status other than 0, which is right where there is no feed
}

// Error returns the reason.
func (e *runError) Error() string { return e.Reason }

// Command returns a Reader that runs a program. In its arguments, {url} is replaced by
// the address of the feed, and {state} by a directory, the same for all polls of a
// case. The program prints a Result as JSON; its environment has
// CONFORMANCE_DUE, which is 0 if the program decides whether the feed is due, and
// otherwise 1. Its standard error is also written to stderr, unless stderr is nil. An
// error is a failed run.
func Command(stderr io.Writer, args ...string) Reader {
	return func(ctx context.Context, url, state string) (*Result, error) {
		if len(args) == 0 {
			return nil, errors.New("there is no command")
		}
		words := make([]string, len(args))
		for i, arg := range args {
			words[i] = strings.NewReplacer("{url}", url, "{state}", state).Replace(arg)
		}
		cmd := exec.CommandContext(ctx, words[0], words[1:]...)
		cmd.WaitDelay = time.Second
		cmd.Env = append(os.Environ(), "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
		due := "CONFORMANCE_DUE=1"
		if !Due(ctx) {
			due = "CONFORMANCE_DUE=0"
		}
		cmd.Env = append(cmd.Env, due)
		printed, said := &limitedBuffer{left: mostPrinted}, new(tail)
		cmd.Stdout, cmd.Stderr = printed, said
		if stderr != nil {
			cmd.Stderr = io.MultiWriter(said, stderr)
		}
		err := cmd.Run()
		if ctx.Err() != nil {
			return nil, &runError{Reason: "did not finish in time", Stderr: said.String()}
		}
		var ended *exec.ExitError
		if exited := errors.As(err, &ended); err != nil && (!exited || ended.ExitCode() < 0) {
			return nil, &runError{Reason: err.Error(), Stderr: said.String()}
		}
		result, problem := readResult(&printed.Buffer)
		switch {
		case errors.Is(problem, errNothing) && err != nil:
			return nil, &runError{Reason: err.Error() + ", and " + problem.Error(), Stderr: said.String(), Exited: true}
		case problem != nil:
			return nil, &runError{Reason: problem.Error(), Stderr: said.String()}
		}
		return result, nil
	}
}

// Keeps reports whether a command's arguments contain {state}.
func Keeps(args []string) bool { return strings.Contains(strings.Join(args, " "), "{state}") }

// A limitedBuffer is a buffer with a maximum size. Write fails beyond it.
type limitedBuffer struct {
	bytes.Buffer
	left int
}

func (l *limitedBuffer) Write(p []byte) (int, error) {
	if l.left -= len(p); l.left < 0 {
		return 0, fmt.Errorf("the program printed more than %d bytes", mostPrinted)
	}
	return l.Buffer.Write(p)
}

// A tail keeps the end of the text written to it.
type tail struct{ kept []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.kept = append(t.kept, p...)
	if over := len(t.kept) - mostTold; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	return strings.ToValidUTF8(strings.TrimSpace(string(t.kept)), "\uFFFD")
}
