package feedhistory

import (
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A server that says UTF-8 of everything makes one id of two only where nothing
// else tells what the bytes are.
func TestCharsetOfHTTP(t *testing.T) {
	const (
		news, letters  = "\xCD\xEE\xE2", "\xC0\xE1\xE2" // Нов and Абв in windows-1251
		newsJSON       = `{"version":"https://jsonfeed.org/version/1.1","items":[{"id":"` + news + `"},{"id":"` + letters + `"}]}`
		atom1, atom2   = `<feed xmlns="http://www.w3.org/2005/Atom"><entry><id>` + news + `</id></entry>`, `<entry><id>` + letters + `</id></entry></feed>`
		declaredInAtom = `<?xml version="1.0" encoding="windows-1251"?>` + atom1 + atom2
	)
	for name, test := range map[string]struct{ body, contentType, first, second, code string }{
		"declared":        {declaredInAtom, "application/xml; charset=utf-8", "Нов", "Абв", "charset-mismatch"},
		"undeclared":      {atom1 + atom2, "application/xml; charset=utf-8", "Íîâ", "Àáâ", "invalid-bytes"},
		"said by HTTP":    {atom1 + atom2, "application/xml; charset=windows-1251", "Нов", "Абв", ""},
		"JSON, HTTP":      {newsJSON, "application/json; charset=windows-1251", "Нов", "Абв", "invalid-bytes"},
		"JSON, undefined": {newsJSON, "application/json; charset=utf-8", "Íîâ", "Àáâ", "invalid-bytes"},
		"JSON, UTF-8": {strings.NewReplacer(news, "Нов", letters, "Абв").Replace(newsJSON),
			"application/json; charset=windows-1251", "Нов", "Абв", ""},
	} {
		doc, err := Parser{Header: http.Header{"Content-Type": {test.contentType}}}.Parse(strings.NewReader(test.body), "")
		require.NoError(t, err, name)
		require.Len(t, doc.Entries, 2, name)
		require.Equal(t, test.first, doc.Entries[0].ID, name)
		require.Equal(t, test.second, doc.Entries[1].ID, name)
		require.Equal(t, test.code, strings.Join(codes(doc.Notes), " "), name)
	}
}
