package atompmh

import (
	"errors"
	"fmt"
	"mime"
	"strings"
)

// A mediaRange is an element of Accept (RFC 9110 §12.5.1): a media type, with
// parameters or without, type/* or */*.
type mediaRange struct {
	kind, sub string // "*" means any
	params    map[string]string
}

// readRanges parses Harvester.Accept.
func readRanges(accept []string) ([]mediaRange, error) {
	ranges := make([]mediaRange, len(accept))
	for i, value := range accept {
		r, err := readRange(value)
		if err == nil && r.kind == "*" && r.sub != "*" {
			err = errors.New("a wildcard before the slash requires one after it")
		}
		if _, ok := r.params["q"]; ok {
			err = errors.New("a weight has no meaning here: the order is the preference")
		}
		if err != nil {
			return nil, &AcceptError{Value: value, Err: err}
		}
		ranges[i] = r
	}
	return ranges, nil
}

// readRange parses a media type or range. Names are converted to lower case.
func readRange(value string) (mediaRange, error) {
	name, params, err := mime.ParseMediaType(value)
	if err != nil {
		return mediaRange{}, err
	}
	kind, sub, ok := strings.Cut(name, "/")
	if !ok || kind == "" || sub == "" {
		return mediaRange{}, fmt.Errorf("not a media type: %q", value)
	}
	return mediaRange{kind, sub, params}, nil
}

// matches reports whether a media type is in the range: it has every parameter
// of the range, and may have others. Case does not matter in values: it does
// not in those of charset, and hardly ever in others (RFC 9110 §8.3.1).
func (r mediaRange) matches(of mediaRange) bool {
	if r.kind != "*" && r.kind != of.kind || r.sub != "*" && r.sub != of.sub {
		return false
	}
	for name, value := range r.params {
		if has, ok := of.params[name]; !ok || !strings.EqualFold(has, value) {
			return false
		}
	}
	return true
}

// choose returns the representation to use: the first one in the first range to contain
// any (atom-pmh consumer#5); without ranges, the first of all. Only */* contains a
// representation of unknown type.
func choose(all []Representation, ranges []mediaRange) *Representation {
	if len(ranges) == 0 {
		ranges = []mediaRange{{"*", "*", nil}}
	}
	types := make([]mediaRange, len(all))
	for i, r := range all {
		types[i], _ = readRange(r.Type)
	}
	for _, r := range ranges {
		for i, of := range types {
			if r.matches(of) {
				return &all[i]
			}
		}
	}
	return nil
}
