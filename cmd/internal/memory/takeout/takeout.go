// Package takeout reads the JSON exports of Google Reader, Inoreader and Feedly.
package takeout

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"

	"github.com/feedhistory/feedhistory/cmd/internal/memory"
	"github.com/feedhistory/feedhistory/cmd/internal/memory/greader"
)

// Is reports whether the beginning of a file is a takeout's: an object with a list of items,
// or a list of items with their origins.
func Is(start []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(start))
	token, err := decoder.Token()
	switch {
	case err != nil:
		return false
	case token == json.Delim('['):
		if token, err = decoder.Token(); err != nil || token != json.Delim('{') {
			return false
		}
		return hasMember(decoder, "origin", "alternate", "originId")
	}
	return token == json.Delim('{') && hasMember(decoder, "items")
}

// hasMember reports whether the decoder's current object has one of the members, with an
// array or an object or a string.
func hasMember(decoder *json.Decoder, names ...string) bool {
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return false
		}
		if text, ok := name.(string); ok && slices.Contains(names, text) {
			return true
		}
		var other json.RawMessage
		if decoder.Decode(&other) != nil {
			return false
		}
	}
	return false
}

// Read yields the items of a file in its order. The feed is the one to which items without
// an origin belong; "" if there is none.
func Read(ctx context.Context, file, feed, mark string) iter.Seq2[memory.Found, error] {
	return func(yield func(memory.Found, error) bool) {
		f, err := os.Open(file)
		if err != nil {
			yield(memory.Found{}, err)
			return
		}
		defer f.Close()
		after, _ := strconv.Atoi(mark)
		r := &reader{ctx: ctx, decoder: json.NewDecoder(bufio.NewReader(f)), feed: feed, after: after, yield: yield}
		err = r.values()
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			err = errors.New("the file is cut short")
		}
		if err != nil && !errors.Is(err, errLeft) {
			yield(memory.Found{}, fmt.Errorf("%s: after item %d: %w", file, r.n, err))
		}
	}
}

// errLeft means the caller wants no more.
var errLeft = errors.New("left")

// A reader reads one file.
type reader struct {
	ctx     context.Context
	decoder *json.Decoder
	feed    string
	n       int // the number of items so far
	after   int // the number of items to skip
	yield   func(memory.Found, error) bool
}

// values reads the values of the file: lists of items, or objects with one.
func (r *reader) values() error {
	for {
		token, err := r.decoder.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch token {
		case json.Delim('['):
			err = r.items()
		case json.Delim('{'):
			err = r.object()
		default:
			err = errors.New("this is not a takeout")
		}
		if err != nil {
			return err
		}
	}
}

// object reads the members of an object, whose items are in the member items.
func (r *reader) object() error {
	for r.decoder.More() {
		name, err := r.decoder.Token()
		if err != nil {
			return err
		}
		if name != "items" {
			var other json.RawMessage
			if err := r.decoder.Decode(&other); err != nil {
				return err
			}
			continue
		}
		if token, err := r.decoder.Token(); err != nil || token != json.Delim('[') {
			return errors.Join(errors.New("the items are not a list"), err)
		}
		if err := r.items(); err != nil {
			return err
		}
	}
	_, err := r.decoder.Token()
	return err
}

// items reads the rest of a list of items.
func (r *reader) items() error {
	for r.decoder.More() {
		if err := r.ctx.Err(); err != nil {
			return err
		}
		var raw json.RawMessage
		if err := r.decoder.Decode(&raw); err != nil {
			return err
		}
		if r.n++; r.n <= r.after {
			continue
		}
		if !r.yield(r.found(raw), nil) {
			return errLeft
		}
	}
	_, err := r.decoder.Token()
	return err
}

func (r *reader) found(raw []byte) memory.Found {
	var item greader.Item
	found := memory.Found{Mark: strconv.Itoa(r.n)}
	if err := json.Unmarshal(raw, &item); err != nil {
		found.Damage = fmt.Errorf("item %d: %w", r.n, err)
		return found
	}
	found.Feed, found.Title = item.Feed(), item.Origin.Title
	if found.Feed == "" {
		found.Feed = r.feed
	}
	switch found.Entry = item.Kept(); {
	case found.Entry == nil:
		found.Damage = fmt.Errorf("item %d: it has neither an id nor a link nor a title", r.n)
	case found.Feed == "":
		found.Damage, found.Entry = fmt.Errorf("item %d: it names no feed", r.n), nil
	}
	return found
}
