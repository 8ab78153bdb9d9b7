package iri

import "strings"

// Directory returns the URL of the directory of a document, without userinfo and
// query. References with a path resolve against it as against the document.
func Directory(url string) string {
	url, _, _ = strings.Cut(Redact(url), "#")
	url, _, _ = strings.Cut(url, "?")
	start := strings.Index(url, "//") + 2
	if start == 1 {
		start = 0
	}
	if slash := strings.LastIndexByte(url[start:], '/'); slash >= 0 {
		return url[:start+slash+1]
	}
	return url
}
