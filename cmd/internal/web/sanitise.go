package web

import (
	"cmp"
	"html/template"
	"net/url"
	"strings"

	"github.com/microcosm-cc/bluemonday"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/feedhistory/feedhistory"
)

// mostShown is the maximum size of a text to show, in bytes.
const mostShown = 1 << 20

// sanitise returns a text as harmless markup, and whether it was cut. Elements become
// links if they would load something, which reveals to others who reads it; images do,
// too, unless images is set.
func sanitise(t feedhistory.Text, images bool) (markup template.HTML, cut bool) {
	body := t.Body
	if cut = len(body) > mostShown; cut {
		body = strings.ToValidUTF8(body[:mostShown], "")
	}
	switch {
	case strings.TrimSpace(body) == "":
		return "", false
	case t.Type == feedhistory.TextHTML || t.Type == feedhistory.TextXHTML:
		body = linked(body, t.Base, images)
	case t.Type == feedhistory.TextPlain || t.Type == "" || strings.HasPrefix(t.Type, "text/"):
		body = "<pre>" + html.EscapeString(body) + "</pre>"
	default:
		return "", false // other kinds of data
	}
	policy := harmless
	if images {
		policy = withImages
	}
	return template.HTML(strings.TrimSpace(policy.Sanitize(body))), cut
}

// harmless allows the elements of text. It allows no ids or classes, with which
// markup could pass for a part of the page.
var harmless = newPolicy()

// withImages allows images, too, for users who want them.
var withImages = func() *bluemonday.Policy {
	p := newPolicy()
	p.AllowAttrs("src", "alt", "title").OnElements("img")
	return p
}()

func newPolicy() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowStandardURLs()
	p.RequireNoReferrerOnLinks(true)
	p.AllowAttrs("href").OnElements("a")
	p.AllowAttrs("lang", "dir", "title").Globally()
	p.AllowElements(
		"p", "br", "hr", "div", "span", "section", "article", "aside", "header", "footer", "h1", "h2", "h3", "h4", "h5", "h6",
		"blockquote", "q", "cite", "pre", "code", "samp", "kbd", "var", "tt", "em", "strong", "b", "i", "u", "s", "del", "ins",
		"small", "sub", "sup", "mark", "abbr", "acronym", "dfn", "time", "bdi", "bdo", "ruby", "rt", "rp", "wbr",
		"ul", "ol", "li", "dl", "dt", "dd", "figure", "figcaption", "details", "summary", "address",
		"table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td",
	)
	p.AllowAttrs("colspan", "rowspan").Matching(bluemonday.Integer).OnElements("th", "td")
	p.AllowAttrs("datetime").OnElements("time", "del", "ins")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	return p
}

// linked makes references absolute, and replaces elements that load something by links.
func linked(body, base string, images bool) string {
	context := &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div}
	nodes, err := html.ParseFragment(strings.NewReader(body), context)
	if err != nil {
		return html.EscapeString(body) // nested too deeply
	}
	at, err := feedhistory.ParseURL(base)
	if err != nil {
		at = &url.URL{}
	}
	var b strings.Builder
	for _, n := range nodes {
		root := &html.Node{Type: html.DocumentNode}
		root.AppendChild(n)
		for d := range root.Descendants() {
			relink(d, at, images)
		}
		if html.Render(&b, root) != nil {
			return html.EscapeString(body)
		}
	}
	return b.String()
}

// The elements that load something, each with the text of its link.
var loaded = map[string]string{
	"img": "Image", "video": "Video", "audio": "Audio", "iframe": "Embedded page", "embed": "Embedded", "object": "Embedded",
}

func relink(n *html.Node, base *url.URL, images bool) {
	if n.Type != html.ElementNode {
		return
	}
	if source := sourceOf(n); images && n.Data == "img" && source != "" {
		n.Attr = []html.Attribute{{Key: "src", Val: absolute(base, source)}, {Key: "alt", Val: attribute(n, "alt")}, {Key: "title", Val: attribute(n, "title")}}
		return
	}
	name, isLoaded := loaded[n.Data]
	if !isLoaded {
		for i, a := range n.Attr {
			if a.Key == "href" || a.Key == "cite" {
				n.Attr[i].Val = absolute(base, a.Val)
			}
		}
		return
	}
	source := sourceOf(n)
	if alt := attribute(n, "alt"); alt != "" {
		name += ": " + alt
	}
	if title := attribute(n, "title"); title != "" && title != attribute(n, "alt") {
		name += " – “" + title + "”" // in a comic, the joke
	}
	if n.Data == "img" || n.FirstChild == nil || n.Data == "iframe" {
		for n.FirstChild != nil {
			n.RemoveChild(n.FirstChild)
		}
		n.AppendChild(&html.Node{Type: html.TextNode, Data: "[" + name + "]"})
	}
	inLink := false
	for p := n.Parent; p != nil; p = p.Parent {
		inLink = inLink || p.Data == "a"
	}
	n.Data, n.DataAtom, n.Attr = "a", atom.A, nil
	if source == "" || inLink {
		n.Data, n.DataAtom = "span", atom.Span
		return
	}
	n.Attr = []html.Attribute{{Key: "href", Val: absolute(base, source)}}
}

// sourceOf returns the address from which an element loads.
func sourceOf(n *html.Node) string {
	if source := cmp.Or(attribute(n, "src"), attribute(n, "data"), attribute(n, "data-src")); source != "" {
		return source
	}
	for d := range n.Descendants() {
		if d.Data == "source" && attribute(d, "src") != "" {
			return attribute(d, "src")
		}
	}
	return ""
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return strings.TrimSpace(a.Val)
		}
	}
	return ""
}

// absolute resolves a reference, and escapes its bare characters.
func absolute(base *url.URL, reference string) string {
	u, err := feedhistory.ParseURL(strings.TrimSpace(reference))
	if err != nil {
		return ""
	}
	return base.ResolveReference(u).String()
}

// webLink returns a URL if a page may link to it, else "".
func webLink(address string) string {
	u, err := feedhistory.ParseURL(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return ""
	}
	return u.String()
}
