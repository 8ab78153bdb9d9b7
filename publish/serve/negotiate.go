package serve

import (
	"iter"
	"net/http"
	"strconv"
	"strings"
)

// This file reads a request's Accept and Accept-Encoding, with their weights (RFC 9110
// §12.5).

// weights yields the members of a list with their weights (RFC 9110 §12.4.2),
// except those whose weight is invalid.
func weights(values []string) iter.Seq2[string, float64] {
	return func(yield func(string, float64) bool) {
		for _, value := range values {
			for member := range strings.SplitSeq(value, ",") {
				name, params, _ := strings.Cut(member, ";")
				q, ok := weight(params)
				if name = strings.ToLower(strings.TrimSpace(name)); name == "" || !ok {
					continue
				}
				if !yield(name, q) {
					return
				}
			}
		}
	}
}

// weight returns the q among the parameters, or 1 if there is none.
func weight(params string) (q float64, ok bool) {
	for params != "" {
		var param string
		param, params, _ = strings.Cut(params, ";")
		name, value, _ := strings.Cut(param, "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		return q, err == nil && q >= 0 && q <= 1
	}
	return 1, true
}

// accepts reports whether a list has a member with a weight other than zero.
func accepts(values []string, name string) bool {
	for member, q := range weights(values) {
		if member == name {
			return q > 0
		}
	}
	return false
}

// acceptsGzip reports whether a request with this header accepts gzip, with at
// least the weight of no coding. Without Accept-Encoding, the answer is no: not
// every client that omits the header can decode gzip (RFC 9110 §12.5.3).
func acceptsGzip(h http.Header) bool {
	gzip, rest, identity := -1.0, 0.0, -1.0
	for coding, q := range weights(h["Accept-Encoding"]) {
		switch coding {
		case "gzip", "x-gzip":
			gzip = max(gzip, q)
		case "*":
			rest = q
		case "identity":
			identity = q
		}
	}
	if gzip < 0 {
		gzip = rest
	}
	return gzip > 0 && gzip >= identity
}

// Preferred returns the index of the media type preferred by the request; of equals, the
// first. If it accepts none of them, it returns the first, too: a server may disregard
// Accept (RFC 9110 §12.5.1), and a feed is better than a 406.
func Preferred(h http.Header, types ...string) (best int) {
	top := 0.0
	for i, kind := range types {
		if q := acceptance(h, kind); q > top {
			best, top = i, q
		}
	}
	return best
}

// acceptance returns the weight of a media type, from the most specific range that
// contains it.
func acceptance(h http.Header, kind string) float64 {
	given := map[string]float64{}
	for accepted, weight := range weights(h["Accept"]) {
		if _, ok := given[accepted]; !ok {
			given[accepted] = weight
		}
	}
	major, _, _ := strings.Cut(kind, "/")
	for _, accepted := range []string{kind, major + "/*", "*/*"} {
		if q, ok := given[accepted]; ok {
			return q
		}
	}
	return 0
}
