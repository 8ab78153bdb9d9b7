package serve

import (
	"net/http"
	"strconv"
	"strings"
)

// This file reads a request's Accept and Accept-Encoding, with their weights (RFC 9110
// §12.5).

// weights returns the members of a list with their weights (RFC 9110 §12.4.2), except those
// whose weight is invalid. The first of a name counts.
func weights(values []string) map[string]float64 {
	if len(values) == 0 {
		return nil
	}
	all := map[string]float64{}
	for _, value := range values {
		for member := range strings.SplitSeq(value, ",") {
			name, params, _ := strings.Cut(member, ";")
			name = strings.ToLower(strings.TrimSpace(name))
			q, ok := weight(params)
			if _, again := all[name]; ok && !again {
				all[name] = q
			}
		}
	}
	return all
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

// acceptsGzip reports whether a request with this header accepts gzip, with at
// least the weight of no coding. Without Accept-Encoding, the answer is no: not
// every client that omits the header can decode gzip (RFC 9110 §12.5.3).
func acceptsGzip(h http.Header) bool {
	accepted := weights(h["Accept-Encoding"])
	q, ok := accepted["gzip"]
	older, also := accepted["x-gzip"]
	if q = max(q, older); !ok && !also {
		q = accepted["*"]
	}
	return q > 0 && q >= accepted["identity"]
}

// Preferred returns the index of the media type preferred by the request; of equals, the
// first. If it accepts none of them, it returns the first, too: a server may disregard
// Accept (RFC 9110 §12.5.1), and a feed is better than a 406.
func Preferred(h http.Header, types ...string) (best int) {
	top, accepted := 0.0, weights(h["Accept"])
	for i, kind := range types {
		major, _, _ := strings.Cut(kind, "/")
		for _, of := range []string{kind, major + "/*", "*/*"} { // the most specific one counts
			q, ok := accepted[of]
			if q > top {
				best, top = i, q
			}
			if ok {
				break
			}
		}
	}
	return best
}
