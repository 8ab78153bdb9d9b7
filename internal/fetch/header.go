package fetch

import (
	"errors"
	"net/http"
	"slices"

	"golang.org/x/net/http/httpguts"
)

// reserved are the fields a Request's Header must not have: those set by this package,
// and those of the connection.
var reserved = []string{
	"User-Agent", "Accept", "Accept-Encoding", "Authorization", "If-None-Match", "If-Modified-Since",
	"Host", "Cookie", "Referer", "Connection", "Keep-Alive", "Proxy-Connection", "Proxy-Authorization",
	"Content-Length", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Expect",
}

// addHeader adds the further fields of a request.
func addHeader(r *http.Request, header http.Header) error {
	for name, values := range header {
		name := http.CanonicalHeaderKey(name)
		if !httpguts.ValidHeaderFieldName(name) || slices.Contains(reserved, name) {
			return &RefusedError{URL: r.URL.String(), Rule: RuleHeader, Err: errors.New("a field of this name cannot be added")}
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return &RefusedError{URL: r.URL.String(), Rule: RuleHeader}
			}
			r.Header.Add(name, value)
		}
	}
	return nil
}
