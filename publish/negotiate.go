package publish

import (
	"cmp"
	"iter"
	"net/http"
	"strconv"
	"strings"
)

// What a request says that it can take (RFC 9110 §12.5): Accept and
// Accept-Encoding, each with weights.

// weights reads the members of a list with their weights (RFC 9110 §12.4.2);
// those whose weight is none are left out.
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

// weight finds q among the parameters; 1 if it is not there.
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

// acceptsGzip reports whether gzip is asked for, and not less than no coding at
// all. A request without Accept-Encoding gets none: not all that could say so
// can decode (RFC 9110 §12.5.3).
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

// prefers returns the index of the media type that the request likes best; of
// equals the first. If it likes none, that is the first too: a server may
// disregard Accept (RFC 9110 §12.5.1), and a feed is better than a 406.
func prefers(h http.Header, types ...string) (best int) {
	top := 0.0
	for i, kind := range types {
		if q := acceptance(h, kind); q > top {
			best, top = i, q
		}
	}
	return best
}

// acceptance is the weight of a media type: that of the most specific range
// that it is in.
func acceptance(h http.Header, kind string) (q float64) {
	major, _, _ := strings.Cut(kind, "/")
	specific := 0
	for accepted, weight := range weights(h["Accept"]) {
		rank := cmp.Or(rankIf(accepted == kind, 3), rankIf(accepted == major+"/*", 2), rankIf(accepted == "*/*", 1))
		if rank > specific {
			specific, q = rank, weight
		}
	}
	return q
}

func rankIf(matches bool, n int) int {
	if matches {
		return n
	}
	return 0
}
