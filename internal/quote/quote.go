// Package quote shortens what messages quote from documents.
package quote

import "strings"

// Clip returns the first most bytes of a text, without a broken character at the end,
// and an ellipsis; or the whole text if it is no longer.
func Clip(s string, most int) string {
	if len(s) > most {
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}
