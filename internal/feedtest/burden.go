package feedtest

import (
	"encoding/json"
	"fmt"
	"strings"

	"pgregory.net/rapid"
)

// A Burden is a document that is expensive to read: everything its entries inherit is
// large, and so is the number of places that inherit it.
type Burden struct {
	Format                                  string // "atom", "rss" or "jsonfeed"
	Bindings, URI, Prefix, Lang, Base, Head int    // numbers or lengths
	Authors, Author                         int
	Entries, Links, Relations, Elements     int
	References, Inner                       int
	Content                                 string // how the markup is written: "escaped", "numeric", "cdata" or "xhtml"
	Used                                    bool   // the prefixes occur in each entry
}

// DrawBurden draws a burden of up to about 100 KB.
func DrawBurden(t *rapid.T) *Burden {
	some := func(name string, n ...int) int { return rapid.SampledFrom(n).Draw(t, name) }
	return &Burden{
		Format:   rapid.SampledFrom([]string{"atom", "rss", "jsonfeed"}).Draw(t, "format"),
		Bindings: some("bindings", 0, 1, 5, 200), URI: some("uri", 10, 300, 5000, 100_000), Prefix: some("prefix", 1, 10, 5000),
		Lang: some("lang", 0, 2, 60, 50_000), Base: some("base", 0, 30, 70, 500, 8000), Head: some("head", 0, 60),
		Authors: some("authors", 0, 1, 50), Author: some("author", 5, 1000, 100_000),
		Entries: some("entries", 1, 10, 500), Links: some("links", 0, 1, 20, 300), Relations: some("relations", 1, 16),
		Elements: some("elements", 0, 1, 50), References: some("references", 0, 1, 30, 3000), Inner: some("inner", 0, 1, 200),
		Content: rapid.SampledFrom([]string{"escaped", "numeric", "cdata", "xhtml"}).Draw(t, "content"),
		Used:    rapid.Bool().Draw(t, "used"),
	}
}

// most is about the maximum size of a burden's document.
const most = 100_000

// String returns the document.
func (d *Burden) String() string {
	if d.Format == "jsonfeed" {
		return d.json()
	}
	var b strings.Builder
	const atom = "http://www.w3.org/2005/Atom"
	root, entry, end := `feed xmlns="`+atom+`"`, "entry", "</feed>"
	if d.Format == "rss" {
		root, entry, end = `rss version="2.0" xmlns:atom="`+atom+`"`, "item", "</channel></rss>"
	}
	b.WriteString("<" + root)
	for i := 0; i < d.Bindings && b.Len() < most; i++ {
		fmt.Fprintf(&b, ` xmlns:%s="%s%d"`, d.name(i), strings.Repeat("u", d.URI), i)
	}
	if d.Lang > 0 {
		b.WriteString(` xml:lang="` + strings.Repeat("e", d.Lang) + `"`)
	}
	if d.Base > 0 {
		b.WriteString(` xml:base="http://example.org/` + strings.Repeat("b", max(d.Base-20, 0)) + `/"`)
	}
	b.WriteString(">")
	if d.Format == "rss" {
		b.WriteString("<channel>")
	}
	for range d.Head {
		b.WriteString(`<atom:link rel="related" href="x"/>`)
	}
	for i := 0; i < d.Authors && b.Len() < most; i++ {
		b.WriteString("<author><name>" + strings.Repeat("n", d.Author) + "</name></author>")
	}
	for i := 0; i < d.Bindings && b.Len() < most; i++ {
		b.WriteString("<" + d.name(i) + ":head/>")
	}
	one := d.entry(entry)
	for i := 0; i < d.Entries && (i == 0 || b.Len() < most); i++ {
		fmt.Fprintf(&b, "<%s>%s%s</%s>", entry, d.id(i), one, entry)
	}
	return b.String() + end
}

func (d *Burden) name(i int) string { return fmt.Sprintf("%s%d", strings.Repeat("p", d.Prefix), i) }

func (d *Burden) id(i int) string {
	if d.Format == "rss" {
		return fmt.Sprintf(`<guid>i%d</guid>`, i)
	}
	return fmt.Sprintf(`<id>i%d</id>`, i)
}

// entry returns the part common to all entries.
func (d *Burden) entry(name string) string {
	var b strings.Builder
	for range d.Links {
		b.WriteString(`<link rel="` + strings.TrimSpace(strings.Repeat("next ", d.Relations)) + `" href="x"/>`)
	}
	if d.Used {
		for i := 0; i < d.Bindings && b.Len() < most; i++ {
			b.WriteString("<" + d.name(i) + ":e/>")
		}
	}
	for range d.Elements {
		b.WriteString(`<e href="x" src="y"/><author><uri>x</uri></author>`)
	}
	start, end := `<content type="html">`, "</content>"
	if name == "item" {
		start, end = "<description>", "</description>"
	}
	switch markup := "<a href=x>"; d.Content {
	case "escaped":
		b.WriteString(start + strings.Repeat(strings.ReplaceAll(markup, "<", "&lt;"), d.References) + end)
	case "numeric":
		b.WriteString(start + strings.Repeat("&lt;a h&#114;ef&#61;x>", d.References) + end)
	case "cdata":
		b.WriteString(start + "<![CDATA[" + strings.Repeat(markup, d.References) + "]]>" + end)
	case "xhtml":
		b.WriteString(`<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">`)
		b.WriteString(strings.Repeat(`<p xml:base="d/">`, d.Inner) + strings.Repeat(`<a xml:base="" href="x"/>`, d.References) + strings.Repeat("</p>", d.Inner))
		b.WriteString("</div></content>")
	}
	return b.String()
}

func (d *Burden) json() string {
	item := map[string]any{"id": "i", "url": "u", "external_url": "v", "content_html": strings.Repeat("<a href=x>", d.References)}
	if d.Links > 0 {
		item["attachments"] = times(map[string]any{"url": "a"}, d.Links)
	}
	one, _ := json.Marshal(item)
	n := min(d.Entries, 1+most/len(one))
	data, _ := json.Marshal(map[string]any{
		"version": "https://jsonfeed.org/version/1.1",
		"authors": times(map[string]any{"name": strings.Repeat("n", d.Author)}, min(d.Authors, most/d.Author)),
		"items":   times(json.RawMessage(one), n),
	})
	return string(data)
}

func times[T any](v T, n int) []T {
	list := make([]T, n)
	for i := range list {
		list[i] = v
	}
	return list
}

// URL returns the URL of the document.
func (d *Burden) URL() string {
	if d.Format == "jsonfeed" {
		return "http://example.org/" + strings.Repeat("b", d.Base) + "/feed"
	}
	return "http://example.org/feed"
}
