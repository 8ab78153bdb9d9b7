package web

import (
	"cmp"
	"html/template"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/microcosm-cc/bluemonday"
	"github.com/rivo/uniseg"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/feedhistory/feedhistory"
)

// mostShown is the maximum size of the texts a page shows of an entry with its earlier
// versions, in bytes.
const mostShown = 1 << 20

// cut returns a text of at most some bytes, and whether its end is left out.
func cut(t feedhistory.Text, most int) (feedhistory.Text, bool) {
	if most = max(most, 0); len(t.Body) <= most {
		return t, false
	}
	t.Body = strings.Clone(strings.ToValidUTF8(t.Body[:most], "")) // the rest is not held
	return t, true
}

// A display is how a page shows a text.
type display struct {
	pictures *pictureProxy // shows images; nil means they are links
	page     string        // the original page of the entry; "" if unknown
	prefix   string        // of the text's ids, so they are no others of the page; "" means "t-"
}

// sanitise returns a text as harmless markup. Elements become links if they would load
// something, which reveals to others who reads it; images do, too, without a proxy for them.
func sanitise(t feedhistory.Text, as display) template.HTML {
	body := t.Body
	switch {
	case strings.TrimSpace(body) == "":
		return ""
	case t.Type == "html" || t.Type == "xhtml":
		body = prepared(body, t.Base, as)
	case t.Type == "text" || t.Type == "" || strings.HasPrefix(t.Type, "text/"):
		body = "<pre>" + html.EscapeString(body) + "</pre>"
	default:
		return "" // other kinds of data
	}
	policy := harmless
	if as.pictures != nil {
		policy = as.pictures.policy
	}
	text := strings.ReplaceAll(policy().Sanitize(body), "/>", ">") // of void elements, as HTML has them; in texts and values, > is escaped
	return template.HTML(strings.TrimSpace(text))
}

// harmless allows the elements of text, mathematics and simple drawings. It allows no
// classes or ids other than those a preparation makes, so markup cannot pass for a part of
// the page. The lists are closed: nothing in them loads, runs, styles or is read as raw
// text, and none is an HTML integration point (MathML's annotation-xml, SVG's title).
var harmless = sync.OnceValue(newPolicy)

// What attributes may contain.
var (
	pixels    = regexp.MustCompile(`^[1-9][0-9]{0,4}$`)
	madeID    = regexp.MustCompile(`^[tv][0-9]*-\S{1,200}$`)
	alignment = regexp.MustCompile(`^to-(left|right|center)$`)
)

// MathML Core without its links, and the shapes of SVG.
var (
	mathElements = strings.Fields("math mrow mi mn mo ms mtext mspace mfrac msqrt mroot mstyle merror mpadded mphantom msub msup msubsup " +
		"munder mover munderover mmultiscripts mprescripts mtable mtr mtd semantics")
	drawingElements = strings.Fields("svg g path rect circle ellipse line polyline polygon text tspan")
)

func newPolicy() *bluemonday.Policy {
	plainWord := regexp.MustCompile(`^[A-Za-z-]{1,30}$`)
	geometry := regexp.MustCompile(`^[-+0-9.,%A-Za-z \t\r\n]+$`) // lengths, lists of points, and paths
	colour := regexp.MustCompile(`^(#[0-9A-Fa-f]{3,8}|[A-Za-z]{1,30}|rgba?\([0-9., %]{1,40}\))$`)
	moves := regexp.MustCompile(`^((translate|scale|rotate|skewX|skewY|matrix)\([-+0-9.,eE \t\r\n]+\)[ ,\t\r\n]*)+$`)
	p := bluemonday.NewPolicy()
	p.AllowStandardURLs()
	p.RequireNoReferrerOnLinks(true)
	p.AllowAttrs("href").OnElements("a")
	p.AllowAttrs("lang", "dir", "title").Globally()
	p.AllowAttrs("id").Matching(madeID).Globally()
	p.AllowElements(
		"p", "br", "hr", "div", "span", "section", "article", "aside", "header", "footer", "h1", "h2", "h3", "h4", "h5", "h6",
		"blockquote", "q", "cite", "pre", "code", "samp", "kbd", "var", "tt", "em", "strong", "b", "i", "u", "s", "del", "ins",
		"small", "sub", "sup", "mark", "abbr", "acronym", "dfn", "time", "bdi", "bdo", "ruby", "rt", "rp", "wbr",
		"ul", "ol", "li", "dl", "dt", "dd", "figure", "figcaption", "details", "summary", "address",
		"table", "caption", "thead", "tbody", "tfoot", "tr", "th", "td",
	)
	p.AllowAttrs("colspan", "rowspan").Matching(bluemonday.Integer).OnElements("th", "td", "mtd")
	p.AllowAttrs("class").Matching(alignment).OnElements("th", "td")
	p.AllowAttrs("tabindex").Matching(regexp.MustCompile(`^0$`)).OnElements("pre")
	p.AllowAttrs("datetime").OnElements("time", "del", "ins")
	p.AllowAttrs("start").Matching(bluemonday.Integer).OnElements("ol")
	p.AllowNoAttrs().OnElements(slices.Concat(mathElements, drawingElements)...)
	p.AllowElements(mathElements...)
	p.AllowAttrs("display", "mathvariant", "displaystyle", "form", "fence", "separator", "stretchy", "symmetric", "largeop", "movablelimits", "accent", "accentunder").
		Matching(plainWord).OnElements(mathElements...)
	p.AllowAttrs("scriptlevel", "lspace", "rspace", "width", "height", "depth", "voffset", "linethickness", "minsize", "maxsize").
		Matching(geometry).OnElements(mathElements...)
	p.AllowElements(drawingElements...)
	p.AllowAttrs("viewbox", "width", "height", "x", "y", "dx", "dy", "x1", "x2", "y1", "y2", "cx", "cy", "r", "rx", "ry", "d", "points",
		"stroke-width", "stroke-dasharray", "opacity", "fill-opacity", "stroke-opacity", "font-size").Matching(geometry).OnElements(drawingElements...)
	p.AllowAttrs("fill", "stroke").Matching(colour).OnElements(drawingElements...)
	p.AllowAttrs("fill-rule", "stroke-linecap", "stroke-linejoin", "text-anchor", "dominant-baseline", "font-weight", "font-style").
		Matching(plainWord).OnElements(drawingElements...)
	p.AllowAttrs("transform").Matching(moves).OnElements(drawingElements...)
	p.AllowAttrs("role").Matching(regexp.MustCompile(`^img$`)).OnElements("svg")
	p.AllowAttrs("aria-label").OnElements("svg")
	return p
}

// A preparation makes the markup of a text ready for a page of ours: its references are
// absolute or lead to places in the text, pictures that a script would show are there, and
// other elements that load something are links.
type preparation struct {
	display
	base, at *url.URL // for references, and of the entry's page
	ids      map[string]bool
}

func prepared(body, base string, as display) string {
	context := &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div}
	nodes, err := html.ParseFragmentWithOptions(strings.NewReader(body), context, html.ParseOptionEnableScripting(false))
	if err != nil {
		return html.EscapeString(body) // nested too deeply
	}
	p := &preparation{display: as, base: parsed(base), at: parsed(as.page), ids: map[string]bool{}}
	p.prefix = cmp.Or(p.prefix, "t-")
	root := &html.Node{Type: html.DocumentNode}
	for _, n := range nodes {
		root.AppendChild(n)
	}
	p.unhide(root)
	for n := range root.Descendants() {
		p.name(n)
	}
	for _, n := range slices.Collect(root.Descendants()) { // which change
		if n.Type == html.ElementNode {
			p.element(n)
		}
	}
	var b strings.Builder
	if html.Render(&b, root) != nil {
		return html.EscapeString(body)
	}
	return b.String()
}

func parsed(address string) *url.URL {
	u, err := feedhistory.ParseURL(address)
	if err != nil {
		return &url.URL{}
	}
	return u
}

// unhide shows the content of noscript elements, because no script of the text runs. A
// picture there repeats the one in front of it, or replaces its placeholder.
func (p *preparation) unhide(root *html.Node) {
	for _, n := range slices.Collect(root.Descendants()) {
		if n.Data != "noscript" || n.Type != html.ElementNode || n.Parent == nil {
			continue
		}
		before := n.PrevSibling
		for before != nil && before.Type == html.TextNode && strings.TrimSpace(before.Data) == "" {
			before = before.PrevSibling
		}
		own, other := firstImage(n), (*html.Node)(nil)
		if before != nil {
			other = firstImage(before)
		}
		if own != nil && other != nil {
			isLazy := slices.ContainsFunc(other.Attr, func(a html.Attribute) bool { return strings.HasPrefix(a.Key, "data-") })
			switch source := sourceOf(other); {
			case source != "" && (isLazy || source == sourceOf(own)):
				n.Parent.RemoveChild(n)
				continue
			case source == "":
				other.Parent.RemoveChild(other)
			}
		}
		for n.FirstChild != nil {
			child := n.FirstChild
			n.RemoveChild(child)
			n.Parent.InsertBefore(child, n)
		}
		n.Parent.RemoveChild(n)
	}
}

func firstImage(n *html.Node) *html.Node {
	if n.Data == "img" {
		return n
	}
	for d := range n.Descendants() {
		if d.Data == "img" {
			return d
		}
	}
	return nil
}

// name gives an element with an id, or an old anchor with a name, an id of this page.
func (p *preparation) name(n *html.Node) {
	if n.Type != html.ElementNode {
		return
	}
	id := attribute(n, "id")
	if n.Data == "a" {
		id = cmp.Or(id, attribute(n, "name"))
	}
	n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool {
		return slices.Contains([]string{"id", "name", "class", "tabindex"}, a.Key)
	})
	if id == "" || p.ids[id] || !madeID.MatchString(p.prefix+id) {
		return
	}
	p.ids[id] = true
	n.Attr = append(n.Attr, html.Attribute{Key: "id", Val: p.prefix + id})
}

// refer resolves a reference. It leads to a place in the text if the text has it, or else on
// the entry's page, because the document with the text is a feed.
func (p *preparation) refer(reference string) string {
	u, err := feedhistory.ParseURL(strings.TrimSpace(reference))
	if err != nil {
		return ""
	}
	to := p.base.ResolveReference(u)
	bare := *to
	bare.Fragment, bare.RawFragment = "", ""
	isHere := *u == url.URL{Fragment: u.Fragment, RawFragment: u.RawFragment}
	if to.Fragment == "" || !isHere && bare.String() != p.base.String() && bare.String() != p.at.String() {
		return to.String()
	}
	if p.ids[to.Fragment] {
		return (&url.URL{Fragment: p.prefix + to.Fragment}).String()
	}
	if isHere && p.page != "" {
		return p.at.ResolveReference(u).String()
	}
	return to.String()
}

// The elements that load something, each with the text of its link.
var loaded = map[string]string{
	"img": "Image", "video": "Video", "audio": "Audio", "iframe": "Embedded page", "embed": "Embedded", "object": "Embedded",
}

// element makes one element ready.
func (p *preparation) element(n *html.Node) {
	switch n.Data {
	case "svg":
		p.drawing(n)
		return
	case "annotation", "annotation-xml": // the same in another language, such as TeX
		clearChildren(n)
		return
	case "th", "td":
		p.align(n)
	case "pre": // long lines scroll, also by the keyboard
		n.Attr = append(n.Attr, html.Attribute{Key: "tabindex", Val: "0"})
	case "img":
		if isSymbol(attribute(n, "alt")) { // a picture of a character, such as WordPress's smileys
			n.Type, n.Data, n.DataAtom, n.Attr = html.TextNode, attribute(n, "alt"), 0, nil
			return
		}
		if source := sourceOf(n); p.pictures != nil && source != "" {
			p.picture(n, source)
			return
		}
	}
	name, isLoaded := loaded[n.Data]
	if !isLoaded {
		for i, a := range n.Attr {
			if a.Key == "href" || a.Key == "cite" {
				n.Attr[i].Val = p.refer(a.Val)
			}
		}
		return
	}
	p.link(n, name)
}

// picture keeps an image with its size, so the page does not jump when it comes.
func (p *preparation) picture(n *html.Node, source string) {
	address := absolute(p.base, fitting(candidates(n), source))
	attrs := []html.Attribute{{Key: "src", Val: address}, {Key: "alt", Val: attribute(n, "alt")}, {Key: "title", Val: attribute(n, "title")}, {Key: "loading", Val: "lazy"}}
	if id := attribute(n, "id"); id != "" {
		attrs = append(attrs, html.Attribute{Key: "id", Val: id})
	}
	width, height := strings.TrimSuffix(attribute(n, "width"), "px"), strings.TrimSuffix(attribute(n, "height"), "px")
	if size := p.pictures.size(address); size.X > 0 && (!pixels.MatchString(width) || !pixels.MatchString(height)) {
		width, height = strconv.Itoa(size.X), strconv.Itoa(size.Y)
	}
	if pixels.MatchString(width) && pixels.MatchString(height) {
		attrs = append(attrs, html.Attribute{Key: "width", Val: width}, html.Attribute{Key: "height", Val: height})
	}
	n.Attr = attrs
}

// shownWidth is the number of pixels that the picture of a text takes on fine screens.
const shownWidth = 1400

// fitting returns the address of the smallest of the candidates that is wide enough, or else of
// the widest; source if their widths are unknown.
func fitting(list []candidate, source string) string {
	best := 0
	for _, c := range list {
		text, ok := strings.CutSuffix(c.size, "w")
		width, err := strconv.Atoi(text)
		if !ok || err != nil {
			continue
		}
		if best == 0 || best < shownWidth && width > best || width >= shownWidth && width < best {
			best, source = width, c.url
		}
	}
	return source
}

// isSymbol reports whether text is one symbol, such as an emoji.
func isSymbol(text string) bool {
	r, _ := utf8.DecodeRuneInString(text)
	return unicode.IsSymbol(r) && r >= utf8.RuneSelf && uniseg.GraphemeClusterCount(text) == 1
}

// link makes a link of an element that loads something.
func (p *preparation) link(n *html.Node, name string) {
	source := sourceOf(n)
	alt, title := attribute(n, "alt"), attribute(n, "title")
	if alt != "" {
		name += ": " + alt
	}
	if title != "" && title != alt {
		name += " – “" + title + "”" // in a comic, the joke
	}
	if isEmpty := strings.TrimSpace(textOf(n)) == ""; n.Data == "img" || isEmpty || n.Data == "iframe" {
		if file := path.Base(parsed(source).Path); alt+title == "" && (n.Data == "video" || n.Data == "audio") && len(file) > 1 {
			name += ": " + file
		} else if host := p.base.ResolveReference(parsed(source)).Host; alt+title == "" && n.Data == "iframe" && host != "" {
			name += " of " + host
		}
		setText(n, "["+name+"]")
	}
	inLink := false
	for a := n.Parent; a != nil; a = a.Parent {
		inLink = inLink || a.Data == "a"
	}
	n.Data, n.DataAtom, n.Attr = "a", atom.A, nil
	if source == "" || inLink {
		n.Data, n.DataAtom = "span", atom.Span
		return
	}
	n.Attr = []html.Attribute{{Key: "href", Val: absolute(p.base, source)}}
}

// drawing keeps a drawing of shapes under its title. One with anything else, such as a
// picture, a style or a reference, would look wrong without it, so it becomes its title.
func (p *preparation) drawing(n *html.Node) {
	title := ""
	whole := true
	for _, d := range slices.Collect(n.Descendants()) {
		switch {
		case d.Type != html.ElementNode:
		case d.Data == "title" || d.Data == "desc" || d.Data == "metadata":
			title = cmp.Or(title, strings.Join(strings.Fields(textOf(d)), " "))
			if d.Parent != nil {
				d.Parent.RemoveChild(d)
			}
		case !slices.Contains(drawingElements, d.Data) || attribute(d, "style") != "" || attribute(d, "href") != "":
			whole = false
		}
	}
	title = cmp.Or(attribute(n, "aria-label"), title, "Drawing")
	if whole && n.FirstChild != nil {
		n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "role" || a.Key == "aria-label" })
		n.Attr = append(n.Attr, html.Attribute{Key: "role", Val: "img"}, html.Attribute{Key: "aria-label", Val: title})
		return
	}
	n.Data, n.DataAtom, n.Namespace, n.Attr = "span", atom.Span, "", nil
	setText(n, "["+title+"]")
}

// setText replaces the content of an element.
func setText(n *html.Node, text string) {
	clearChildren(n)
	n.AppendChild(&html.Node{Type: html.TextNode, Data: text})
}

func clearChildren(n *html.Node) {
	for n.FirstChild != nil {
		n.RemoveChild(n.FirstChild)
	}
}

// alignedText matches the alignment of a cell in its style.
var alignedText = regexp.MustCompile(`(?i)(?:^|;)\s*text-align\s*:\s*(left|right|center)\s*(?:;|$)`)

// align keeps the alignment of a cell, as a class of ours.
func (p *preparation) align(n *html.Node) {
	to := attribute(n, "align")
	if m := alignedText.FindStringSubmatch(attribute(n, "style")); m != nil {
		to = m[1]
	}
	if to = "to-" + strings.ToLower(to); alignment.MatchString(to) {
		n.Attr = append(n.Attr, html.Attribute{Key: "class", Val: to})
	}
}

// textOf returns the text in an element.
func textOf(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// A candidate is one of several files with the same picture.
type candidate struct{ url, size string }

// candidates returns the files of an image, or of the picture around it.
func candidates(n *html.Node) (list []candidate) {
	set := cmp.Or(attribute(n, "srcset"), attribute(n, "data-srcset"), attribute(n, "data-lazy-srcset"))
	if set == "" && n.Parent != nil && n.Parent.Data == "picture" {
		for d := range n.Parent.ChildNodes() {
			if d.Data == "source" && (set == "" || strings.Contains(attribute(d, "type"), "jpeg")) {
				set = cmp.Or(attribute(d, "srcset"), attribute(d, "data-srcset"), set)
			}
		}
	}
	for part := range strings.SplitSeq(set, ", ") {
		fields := strings.Fields(strings.Trim(part, " ,\t\r\n"))
		switch {
		case len(fields) == 1:
			list = append(list, candidate{url: fields[0]})
		case len(fields) == 2:
			list = append(list, candidate{fields[0], fields[1]})
		}
	}
	return list
}

// sourceOf returns the address from which an element loads. Where a script would replace a
// placeholder, it is the script's.
func sourceOf(n *html.Node) string {
	source := cmp.Or(attribute(n, "src"), attribute(n, "data"))
	if source == "" || strings.HasPrefix(source, "data:") {
		source = cmp.Or(attribute(n, "data-src"), attribute(n, "data-lazy-src"), attribute(n, "data-original"))
	}
	if source != "" {
		return source
	}
	if n.Data == "img" {
		if list := candidates(n); len(list) > 0 {
			return list[len(list)-1].url // without a choice, the largest, as most lists end
		}
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
