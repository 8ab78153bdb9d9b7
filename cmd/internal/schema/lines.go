package schema

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
)

// Lines yields the JSON value of each nonempty line. An error ends the sequence; if a
// line is wrong, the error names the line.
func Lines[T any](r io.Reader) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		in := bufio.NewReader(r)
		for n := 1; ; n++ {
			line, err := in.ReadBytes('\n')
			if text := bytes.TrimSpace(bytes.TrimPrefix(line, []byte("\ufeff"))); len(text) > 0 {
				var value T
				if bad := json.Unmarshal(text, &value); bad != nil {
					yield(value, fmt.Errorf("line %d: %w", n, bad))
					return
				}
				if !yield(value, nil) {
					return
				}
			}
			if err == io.EOF {
				return
			}
			if err != nil {
				var none T
				yield(none, err)
				return
			}
		}
	}
}
