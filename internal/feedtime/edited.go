package feedtime

import (
	"bytes"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// The namespaces of app:edited in RFC 5023 and its drafts.
const (
	nsApp      = "http://www.w3.org/2007/app"
	nsAppDraft = "http://purl.org/atom/app#"
)

// Edited returns the app:edited (RFC 5023) of an entry's element; the zero time if it has
// none, or an invalid one.
func Edited(xml []byte) time.Time {
	if !bytes.Contains(xml, []byte("edited")) {
		return time.Time{}
	}
	for _, space := range []string{nsApp, nsAppDraft} {
		for edited := range xmlscan.Children(string(xml), space, "edited") {
			t, _ := time.Parse(time.RFC3339, strings.TrimSpace(edited.Text)) // zero with an error
			return t
		}
	}
	return time.Time{}
}
