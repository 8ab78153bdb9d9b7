package sitemap

import (
	"cmp"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A scope is the part of a site a feed is about.
type scope struct {
	home   *url.URL
	host   string          // of the feed's links, as a key has it
	under  string          // the beginning of the path of each page
	form   *regexp.Regexp  // of the feed's own links
	plain  map[string]bool // the segments of their paths
	oldest string          // the last of them
	same   string          // a URL of the only origin allowed; "" means any
}

// part matches the address of a feed or page about a part of a site.
var part = regexp.MustCompile(`(?i)(^|[/?&])(tags?|categor(y|ies)|topics?|authors?|users?|comments?|search|labels?|(cat|tag|author|s)=[^&]*)(/|$)`)

// notPost matches a segment in the paths of pages that are no posts: lists, and translations.
var notPost = regexp.MustCompile(`(?i)^(tags?|categor(y|ies)|topics?|authors?|users?|comments?|search|labels?|page|amp|feeds?|wp-[a-z]+|privacy([-_]policy)?|imprint|impressum|contact|legal|[a-z]{2}([-_][a-z]{2})?)(\.[a-z]+)?$`)

// blogs matches the last segment of the address of a blog whose posts are elsewhere.
var blogs = regexp.MustCompile(`(?i)^(blogs?|news|posts?|articles?|journal|writing|archives?|weblog|index\.[a-z]+)$`)

// scopeOf returns the scope of a feed. The error is a misfit if the feed is not about the
// site's posts.
func scopeOf(doc *feedhistory.Document, sameOrigin bool) (s scope, err error) {
	links := ownLinks(doc)
	if len(links)*2 <= len(doc.Entries) {
		return s, misfit("most entries have no page on its site")
	}
	root := links[0].ResolveReference(&url.URL{Path: "/"})
	s.home, s.host, s.oldest = root, hostKey(root), links[len(links)-1].String()
	if l, ok := doc.Links.Rel("alternate"); ok {
		u, err := feedhistory.ParseURL(l.Href)
		if err != nil || hostKey(u) != s.host {
			return s, misfit("the pages of its entries are on another site than its own")
		}
		s.home = root.ResolveReference(&url.URL{Path: cmp.Or(u.Path, "/"), RawQuery: u.RawQuery})
	}
	if sameOrigin {
		if s.same = doc.URL; !feedhistory.SameOrigin(s.same, s.home.String()) {
			return s, misfit("its site has another origin")
		}
	}
	s.under = s.home.Path[:strings.LastIndex(s.home.Path, "/")+1]
	isOutside := slices.ContainsFunc(links, func(u *url.URL) bool { return !strings.HasPrefix(u.Path, s.under) })
	if isOutside && blogs.MatchString(path.Base(s.home.Path)) {
		s.under, isOutside = "/", false
	}
	feed, err := feedhistory.ParseURL(doc.URL)
	if err != nil || isOutside || part.MatchString(s.home.Path) || part.MatchString(s.home.RawQuery) || part.MatchString(path.Dir(feed.Path)) || part.MatchString(feed.RawQuery) {
		return s, misfit("it is about a part of its site only")
	}
	s.form, s.plain = formOf(links), map[string]bool{}
	for _, u := range links {
		for segment := range strings.SplitSeq(path.Dir(u.Path), "/") {
			s.plain[strings.ToLower(segment)] = true
		}
	}
	return s, nil
}

// ownLinks returns the links of the entries to the site with most of them.
func ownLinks(doc *feedhistory.Document) (links []*url.URL) {
	sites := map[string][]*url.URL{}
	for _, e := range doc.Entries {
		if u, err := feedhistory.ParseURL(linkOf(e)); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
			host := hostKey(u)
			if sites[host] = append(sites[host], u); len(sites[host]) > len(links) {
				links = sites[host]
			}
		}
	}
	return links
}

func hostKey(u *url.URL) string { return strings.TrimPrefix(strings.ToLower(u.Host), "www.") }

// key returns the same for all addresses surely leading to one page.
func key(address string) string {
	u, err := feedhistory.ParseURL(address)
	if err != nil {
		return address
	}
	p := strings.TrimSuffix(strings.TrimSuffix(u.Path, "index.html"), "/")
	return strings.TrimSuffix(hostKey(u)+p+"?"+pageQuery(u).Encode(), "?")
}

// pageQuery returns the parameters that tell pages apart, without those which say where a
// reader comes from.
func pageQuery(u *url.URL) url.Values {
	query := u.Query()
	for name, values := range query {
		if strings.HasPrefix(name, "utm_") || name == "source" && strings.HasPrefix(values[0], "rss") {
			query.Del(name)
		}
	}
	return query
}

// likeLinks returns an address of the site with the scheme and host of the feed's links, and
// without the parameters that pageQuery leaves out.
func (s *scope) likeLinks(address string) string {
	u, err := feedhistory.ParseURL(address)
	if err != nil {
		return address
	}
	_, rest, _ := strings.Cut(address, "//")
	if i := strings.IndexByte(rest, '/'); i >= 0 && hostKey(u) == s.host {
		address = s.home.Scheme + "://" + s.home.Host + rest[i:]
	}
	if query := pageQuery(u); len(query) < len(u.Query()) {
		address, _, _ = strings.Cut(address, "?")
		address = strings.TrimSuffix(address+"?"+query.Encode(), "?")
	}
	return address
}

// holds reports whether a page may be a post of the feed, by its address; alien, that its
// form is another one.
func (s *scope) holds(address string) (alien, ok bool) {
	u, err := feedhistory.ParseURL(address)
	if err != nil || hostKey(u) != s.host || !strings.HasPrefix(u.Path, s.under) ||
		pageNumber.MatchString(address) && !pageNumber.MatchString(s.oldest) ||
		s.same != "" && !feedhistory.SameOrigin(s.same, address) {
		return false, false
	}
	for segment := range strings.SplitSeq(strings.Trim(u.Path, "/"), "/") {
		if !s.plain[strings.ToLower(segment)] && notPost.MatchString(segment) {
			return false, false
		}
	}
	query := pageQuery(u).Encode()
	if s.form.MatchString(strings.TrimSuffix(u.EscapedPath()+"?"+query, "?")) {
		return false, true
	}
	return true, query == "" && strings.Trim(u.Path, "/") != ""
}

// isOwn reports whether a page has the form of the feed's links.
func (s *scope) isOwn(address string) bool {
	alien, ok := s.holds(address)
	return ok && !alien
}

// datePath matches a day in a path.
var datePath = regexp.MustCompile(`/((?:19|20)[0-9]{2})/([0-9]{1,2}|[A-Z][a-z]{2})/([0-9]{1,2})/`)

// dateIn returns the day in an address; zero if there is none.
func dateIn(u *url.URL) (t time.Time) {
	if found := datePath.FindStringSubmatch(u.Path); found != nil {
		for _, layout := range []string{"2006-1-2", "2006-Jan-2"} {
			if day, err := time.Parse(layout, strings.Join(found[1:], "-")); err == nil {
				t = day
			}
		}
	}
	return t
}

// number matches a number in a path, such as those of a date.
var number = regexp.MustCompile(`^[0-9]+$`)

// formOf returns the common form of links: those with as many segments share what is the
// same in all, the length of numbers, and what the last segment ends in.
func formOf(links []*url.URL) *regexp.Regexp {
	at := map[[2]int]map[string]bool{} // the segments, by how many there are, and which one it is
	paths := make([][]string, len(links))
	for i, u := range links {
		paths[i] = strings.Split(strings.Trim(u.EscapedPath(), "/"), "/")
		for j, segment := range paths[i] {
			place := [2]int{len(paths[i]), j}
			if at[place] == nil {
				at[place] = map[string]bool{}
			}
			at[place][segment] = true
		}
	}
	forms := map[string]bool{}
	for i, segments := range paths {
		form := ""
		for j, segment := range segments {
			isLast := j == len(segments)-1
			switch isFixed := len(at[[2]int{len(segments), j}]) == 1; {
			case number.MatchString(segment) && len(segment) < 5:
				form += "/" + map[bool]string{true: "[0-9]{4}", false: "[0-9]{1,3}"}[len(segment) == 4]
			case number.MatchString(segment):
				form += "/[0-9]+"
			case isFixed && (!isLast || len(links) > 1):
				form += "/" + regexp.QuoteMeta(segment)
			case isLast:
				form += "/[^/?]+" + regexp.QuoteMeta(path.Ext(segment))
			default:
				form += "/[^/?]+"
			}
		}
		form += "/?"
		for i, name := range slices.Sorted(maps.Keys(pageQuery(links[i]))) {
			form += map[bool]string{true: `\?`, false: "&"}[i == 0] + regexp.QuoteMeta(name) + "=[^&]+"
		}
		forms[form] = true
	}
	return regexp.MustCompile("^(" + strings.Join(slices.Collect(maps.Keys(forms)), "|") + ")$")
}

// An idRule tells the ID of an entry by its address, whose beginning and end it replaces.
type idRule struct {
	ok                      bool
	from, before, to, after string // the beginnings of addresses and of IDs, and their ends
	decoded                 bool   // IDs have no percent-encoding
	dated                   bool   // IDs have the day, as those of Pelican: tag:example.org,2020-01-31:/one.html
}

// day is the placeholder for a day in an ID.
const day = "\x00"

// learnIDs learns how a feed makes IDs of links and days; the result's ok is false if that
// cannot be told.
func learnIDs(links, ids, days []string) idRule {
	if len(links) == 0 || slices.Equal(links, ids) {
		return idRule{ok: len(links) > 0}
	}
	if len(slices.Compact(slices.Sorted(slices.Values(links)))) < 2 {
		return idRule{}
	}
	for _, dated := range []bool{false, true} {
		for _, decoded := range []bool{false, true} {
			r := idRule{decoded: decoded, dated: dated}
			if r.learn(links, ids, days); r.ok {
				return r
			}
		}
	}
	return idRule{}
}

// form returns an address as it is in IDs.
func (r idRule) form(address string) string {
	if plain, err := url.PathUnescape(address); r.decoded && err == nil {
		return plain
	}
	return address
}

// learn learns the beginnings and ends. The rule is ok if it gives all of the IDs.
func (r *idRule) learn(addresses, all, days []string) {
	links, ids := make([]string, len(addresses)), slices.Clone(all)
	for i, address := range addresses {
		if links[i] = r.form(address); r.dated {
			ids[i] = strings.Replace(ids[i], days[i], day, 1)
		}
	}
	r.ok, r.from, r.before = true, common(links, false), common(ids, false)
	rest := func(all []string, beginning string) (out []string) {
		for _, s := range all {
			out = append(out, s[len(beginning):])
		}
		return out
	}
	r.to, r.after = common(rest(links, r.from), true), common(rest(ids, r.before), true)
	both := common([]string{r.from, r.before}, true)
	r.from, r.before = strings.TrimSuffix(r.from, both), strings.TrimSuffix(r.before, both)
	both = common([]string{r.to, r.after}, false)
	r.to, r.after = strings.TrimPrefix(r.to, both), strings.TrimPrefix(r.after, both)
	for i, address := range addresses {
		r.ok = r.ok && r.of(address, days[i]) == all[i]
	}
}

// common returns the longest common beginning or, if at the end, end of texts.
func common(texts []string, atEnd bool) string {
	s := texts[0]
	for _, t := range texts[1:] {
		n := 0
		for n < min(len(s), len(t)) && (!atEnd && s[n] == t[n] || atEnd && s[len(s)-1-n] == t[len(t)-1-n]) {
			n++
		}
		if s = s[:n]; atEnd {
			s = t[len(t)-n:]
		}
	}
	return s
}

// of returns the ID for an address and a day; "" if the rule does not tell.
func (r idRule) of(address, on string) string {
	middle, begins := strings.CutPrefix(r.form(address), r.from)
	middle, ends := strings.CutSuffix(middle, r.to)
	if !r.ok || !begins || !ends {
		return ""
	}
	return strings.Replace(r.before+middle+r.after, day, on, 1)
}
