package iri

import (
	"slices"
	"strings"
)

// secretNames are the words by which the names of parameters say that the value is a
// secret.
var secretNames = []string{
	"token", "secret", "password", "passwd", "pass", "pwd", "key", "apikey", "authkey", "auth", "authorization", "jwt",
	"credential", "credentials", "sig", "signature", "hmac", "session", "sessionid", "sid",
}

// shortestSecret is the length of the shortest value that can be a secret.
const shortestSecret = 4

// HasSecret reports whether the query of a URL seems to have a secret: whoever knows the
// URL of a paid podcast, for instance, may read it.
func HasSecret(url string) bool {
	for field := range strings.FieldsFuncSeq(Split(url).Query, func(c rune) bool { return c == '&' || c == ';' }) {
		name, value, _ := strings.Cut(field, "=")
		isSecret := func(word string) bool { return slices.Contains(secretNames, word) }
		if len(value) >= shortestSecret && slices.ContainsFunc(words(name), isSecret) {
			return true
		}
	}
	return false
}

// words returns the words of a name such as access_token, feedToken or API-KEY, in lower
// case.
func words(name string) (words []string) {
	start := 0
	cut := func(end int) {
		if end > start {
			words = append(words, strings.ToLower(name[start:end]))
		}
	}
	for i, c := range []byte(name) {
		isUpper, afterLower := 'A' <= c && c <= 'Z', i > 0 && 'a' <= name[i-1] && name[i-1] <= 'z'
		switch isLetter := isUpper || 'a' <= c && c <= 'z'; {
		case !isLetter:
			cut(i)
			start = i + 1
		case isUpper && afterLower:
			cut(i)
			start = i
		}
	}
	cut(len(name))
	return words
}
