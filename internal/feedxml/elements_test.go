package feedxml

import (
	"cmp"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// child returns the first child of an element, and the notes on it.
func child(t *testing.T, format Format, element string) (r *Elements, notes *[]string) {
	t.Helper()
	r, notes = Fragment(element, &xmlscan.Scope{Base: "https://example.org/feed", Lang: "en"}, format), new([]string)
	r.Note = func(code, _ string, offset int) { *notes = append(*notes, fmt.Sprint(code, " ", offset)) }
	require.True(t, r.Child(r.Depth()), element)
	return r, notes
}

// Names and namespaces are as meant, with a note each time the document has others.
func TestNames(t *testing.T) {
	for element, want := range map[string]struct {
		format       Format
		space, local string
		rss, atom    bool
		notes        string
	}{
		`<entry xmlns="http://www.w3.org/2005/Atom"><title/></entry>`:     {FormatAtom, "http://www.w3.org/2005/Atom", "title", false, true, ""},
		`<entry xmlns="http://www.w3.org/2005/Atom"><Title/></entry>`:     {FormatAtom, "http://www.w3.org/2005/Atom", "title", false, true, "name-misspelt 43"},
		`<entry xmlns="http://www.w3.org/2005/atom"><title/></entry>`:     {FormatAtom, "http://www.w3.org/2005/Atom", "title", false, true, ""}, // the root has the note
		`<item><pubdate/></item>`:                                         {FormatRSS, "", "pubDate", true, false, "name-misspelt 6"},
		`<item><x:a xmlns:x="http://purl.org/dc/elements/1.1"/></item>`:   {FormatRSS, "http://purl.org/dc/elements/1.1/", "a", false, false, "namespace-misspelt 6"},
		`<item><x:a xmlns:x="http://www.w3.org/2005/Atom"/></item>`:       {FormatRSS, "http://www.w3.org/2005/Atom", "a", false, true, ""},
		`<item><x:a xmlns:x="http://purl.org/rss/1.0/" xmlns=""/></item>`: {FormatRSS, "http://purl.org/rss/1.0/", "a", true, false, ""},
	} {
		r, notes := child(t, want.format, element)
		require.Equal(t, want.space, r.Space(), element)
		require.Equal(t, want.atom, r.IsAtom(), element)
		if want.format == FormatRSS {
			require.Equal(t, want.rss, r.IsRSS(), element)
		}
		row, odd := r.NoteName()
		require.Equal(t, want.local, cmp.Or(row.Name, r.Local()), element)
		require.Equal(t, odd, want.local != r.Local() || want.space != r.Cursor.Space(), element)
		for range 2 { // reading a name again makes no further note
			_, _ = r.Space(), r.Row()
		}
		require.Equal(t, want.notes, strings.Join(*notes, ", "), element)
	}
}

func TestConstruct(t *testing.T) {
	const entry = `<entry xmlns="http://www.w3.org/2005/Atom" xml:base="/a/">%s</entry>`
	for element, want := range map[string]Construct{
		`<title>A &amp;amp; B</title>`:                            {Type: "text", Body: "A &amp; B"},
		`<title type="html" xml:lang="de"> &lt;b&gt; </title>`:    {Type: "html", Body: "<b>", Lang: "de"},
		`<title>A <b>b</b></title>`:                               {Type: "html", Body: "A <b>b</b>"},
		`<title type="image/png">A</title>`:                       {Type: "text", Body: "A"},
		`<content type="image/png" xml:base="b/">QQ==</content>`:  {Type: "image/png", Body: "A", Base: "https://example.org/a/b/"},
		`<content src="c" type="video/mp4"/>`:                     {Type: "video/mp4", Src: "https://example.org/a/c"},
		`<content type="text/css"> A </content>`:                  {Type: "text/css", Body: "A"},
		`<content type="image/svg+xml"><svg xmlns=""/></content>`: {Type: "image/svg+xml", Body: `<svg xmlns=""/>`},
	} {
		if want.Base == "" {
			want.Base = "https://example.org/a/"
		}
		if want.Lang == "" {
			want.Lang = "en"
		}
		r, _ := child(t, FormatAtom, fmt.Sprintf(entry, element))
		require.Equal(t, want, r.Construct(), element)
	}
}

func TestAtomLink(t *testing.T) {
	long := strings.Repeat("x", 50)
	for element, want := range map[string]struct {
		link  Link
		notes string
	}{
		`<link rel=" self " href="a" type="t" title="u" hreflang="v" length="w"/>`: {link: Link{
			Rel: "self", Href: "https://example.org/a", Type: "t", Title: "u", HrefLang: "v", Length: "w",
		}},
		`<link>a</link>`:              {Link{Href: "https://example.org/a"}, "link-without-href 7"},
		`<link rel="x"/>`:             {Link{Rel: "x"}, "link-without-href 7"},
		`<link href=""/>`:             {link: Link{Href: "https://example.org/feed"}},
		`<link href="` + long + `"/>`: {notes: "url-too-long 7"},
	} {
		r, notes := child(t, FormatAtom, "<entry>"+element+"</entry>")
		r.MaxURL = 50
		require.Equal(t, want.link, r.AtomLink(), element)
		require.Equal(t, want.notes, strings.Join(*notes, ", "), element)
	}
}

// A stopped reader finds no further child, and one released is as new.
func TestStop(t *testing.T) {
	sc := &xmlscan.Scope{}
	r := Again("<item><a/><b/></item>", sc, FormatRSS)
	depth := r.Depth()
	require.True(t, r.Child(depth))
	r.Stop()
	require.False(t, r.Child(depth))
	r.Release()
	r = Again("<item><a/></item>", sc, FormatRSS)
	require.True(t, r.Child(r.Depth()))
	r.Release()
}

// A type counts in any case, whether it is content's or that of a text, and base64 only where
// the type is neither text nor XML.
func TestContentTypes(t *testing.T) {
	for in, want := range map[string]Construct{
		`<content type="TEXT/HTML">&lt;p></content>`:       {Type: "html", Body: "<p>"},
		`<content type="Image/PNG">iVBO Rw==</content>`:    {Type: "image/png", Body: "\x89PNG"},
		`<content type="Text/X-Log">iVBORw==</content>`:    {Type: "text/x-log", Body: "iVBORw=="},
		`<content type="Application/XML"> <a/> </content>`: {Type: "application/xml", Body: "<a/>"},
		`<content mode="base64">YQ==</content>`:            {Type: "text", Body: "a"},
		`<title type="Image/PNG">iVBORw==</title>`:         {Type: "text", Body: "iVBORw=="},
	} {
		entry := `<entry xmlns="http://www.w3.org/2005/Atom">` + in + `</entry>`
		r := Fragment(entry, &xmlscan.Scope{}, FormatAtom)
		require.True(t, r.Child(r.Depth()), in)
		require.Equal(t, want, r.Construct(), in)
	}
}
