package feedxml

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// A type counts in any case, whether it is content's or that of a text, and base64 only where
// the type is neither text nor XML.
func TestContentTypes(t *testing.T) {
	for in, want := range map[string]xmlscan.Construct{
		`<content type="TEXT/HTML">&lt;p></content>`:       {Type: "html", Body: "<p>"},
		`<content type="Image/PNG">iVBO Rw==</content>`:    {Type: "image/png", Body: "\x89PNG"},
		`<content type="Text/X-Log">iVBORw==</content>`:    {Type: "text/x-log", Body: "iVBORw=="},
		`<content type="Application/XML"> <a/> </content>`: {Type: "application/xml", Body: "<a/>"},
		`<content mode="base64">YQ==</content>`:            {Type: "text", Body: "a"},
		`<title type="Image/PNG">iVBORw==</title>`:         {Type: "text", Body: "iVBORw=="},
	} {
		entry := `<entry xmlns="http://www.w3.org/2005/Atom">` + in + `</entry>`
		r := Fragment(entry, &xmlscan.Scope{}, Atom)
		require.True(t, r.Child(r.Depth()), in)
		require.Equal(t, want, r.Construct(), in)
	}
}
