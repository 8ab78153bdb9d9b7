package fetch

import (
	"errors"
	"net/http"
	"net/url"
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

// checkName returns an error if a field of this name cannot be added. Only a secret may be
// a credential of HTTP's own.
func checkName(name string, secret bool) error {
	secret = secret && (name == "Authorization" || name == "Cookie")
	if !httpguts.ValidHeaderFieldName(name) || !secret && slices.Contains(reserved, name) {
		return errors.New("a field of this name cannot be added")
	}
	return nil
}

// addHeader adds the further fields of a request.
func addHeader(r *http.Request, header http.Header) error {
	for name, values := range header {
		name := http.CanonicalHeaderKey(name)
		if err := checkName(name, false); err != nil {
			return refused(r.URL.String(), RuleHeader, err)
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return refused(r.URL.String(), RuleHeader, nil)
			}
			r.Header.Add(name, value)
		}
	}
	return nil
}

// CheckSecrets returns an error if Client.Secrets must not return such fields: their names
// or values are invalid, or their names are among those set by the connection.
func CheckSecrets(fields http.Header) error {
	for name, values := range fields {
		if err := checkName(http.CanonicalHeaderKey(name), true); err != nil {
			return err
		}
		for _, value := range values {
			if !httpguts.ValidHeaderFieldValue(value) {
				return errors.New("the value has a control character")
			}
		}
	}
	return nil
}

// addSecrets adds fields, perhaps credentials, to a request to u.
func addSecrets(u *url.URL, to, fields http.Header) error {
	if err := CheckSecrets(fields); err != nil {
		return refused(u.String(), RuleHeader, err)
	}
	for name, values := range fields {
		to[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	return nil
}
