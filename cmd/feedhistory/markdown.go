package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"

	"github.com/feedhistory/feedhistory/publish"
)

// Articles in Markdown with front matter, as Hugo, Jekyll and others have them.

// A markdownSite is a directory of such articles.
type markdownSite struct {
	files fs.FS
	base  string    // what ids begin with that nothing else is known for
	link  string    // pattern of an article's address; "" for none
	id    string    // pattern of an article's id; "": the address
	now   time.Time // articles dated later are left out, as generators do

	left map[string]int // how many articles were left out, by reason
}

// The reasons for leaving an article out.
const (
	leftPlain  = "without front matter"
	leftDraft  = "drafts"
	leftFuture = "dated in the future"
)

// records reads the site's articles.
func (s *markdownSite) records() (records []*publish.Record, err error) {
	s.left = map[string]int{}
	from := map[string]string{} // an id's file
	err = fs.WalkDir(s.files, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name != "." && strings.HasPrefix(d.Name(), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir() || !isMarkdown(name):
			return nil
		}
		r, err := s.article(name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if r == nil {
			return nil
		}
		if other, ok := from[r.ID]; ok {
			return fmt.Errorf("%s: it has the id of %s: %s", name, other, r.ID)
		}
		from[r.ID] = name
		records = append(records, r)
		return nil
	})
	return records, err
}

// isMarkdown reports whether a file is an article: _index.md is Hugo's for a
// list of articles.
func isMarkdown(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return (ext == ".md" || ext == ".markdown") && path.Base(name) != "_index"+path.Ext(name)
}

// article reads one article; nil if it is left out.
func (s *markdownSite) article(name string) (*publish.Record, error) {
	text, err := fs.ReadFile(s.files, name)
	if err != nil {
		return nil, err
	}
	front, body, err := splitFrontMatter(text)
	if err != nil {
		return nil, err
	}
	at := placeOf(name)
	published, dateErr := front.time("date", "publishDate", "published_at")
	if published.IsZero() {
		published = at.date
	}
	switch {
	case front == nil:
		s.left[leftPlain]++
		return nil, nil
	case front["draft"] == true || front["published"] == false:
		s.left[leftDraft]++
		return nil, nil
	case dateErr != nil:
		return nil, dateErr
	case published.After(s.now):
		s.left[leftFuture]++
		return nil, nil
	}
	updated, err := front.time("lastmod", "updated", "last_modified_at", "modified")
	if err != nil {
		return nil, err
	}
	at.date, at.slug = published, cmp.Or(front.text("slug"), at.slug)
	return s.record(front, body, at, updated)
}

func (s *markdownSite) record(front frontMatter, body []byte, at articlePlace, updated time.Time) (*publish.Record, error) {
	link, err := s.address(front, at)
	if err != nil {
		return nil, err
	}
	id := front.text("id", "guid")
	if id == "" {
		if id, err = s.expand(s.id, at); err != nil {
			return nil, err
		}
	}
	r := &publish.Record{
		ID:        cmp.Or(id, link, s.base+"#"+(&url.URL{Fragment: at.path}).EscapedFragment()),
		Title:     publish.RecordText{Body: cmp.Or(front.text("title"), at.slug)},
		Published: timeJSON(at.date), Updated: timeJSON(updated),
		Summary: publish.RecordText{Body: front.text("description", "summary", "excerpt")},
	}
	if link != "" {
		r.Links = []publish.RecordLink{{Rel: "alternate", Href: link, Type: "text/html"}}
	}
	for _, name := range front.list("author", "authors") {
		r.Authors = append(r.Authors, publish.RecordAuthor{Name: name})
	}
	for _, term := range front.list("categories", "category", "tags") {
		c := publish.RecordCategory{Term: term}
		if !slices.Contains(r.Categories, c) {
			r.Categories = append(r.Categories, c)
		}
	}
	var content bytes.Buffer
	if err := markdown.Convert(body, &content); err != nil {
		return nil, err
	}
	r.Content = publish.RecordText{Type: "html", Body: strings.TrimSpace(content.String()), Base: cmp.Or(link, s.base)}
	return r, nil
}

// markdown renders as Hugo and Jekyll do, more or less. The articles are the
// site's own, so HTML in them stays.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote),
	goldmark.WithRendererOptions(html.WithUnsafe()))

// address returns where an article stands on the site; "" if that is unknown.
func (s *markdownSite) address(front frontMatter, at articlePlace) (string, error) {
	link := front.text("canonical_url", "url", "permalink")
	if link == "" || strings.Contains(link, "/:") { // Jekyll's patterns, such as /:year/:title
		var err error
		if link, err = s.expand(s.link, at); link == "" {
			return "", err
		}
	}
	base, err := url.Parse(s.base)
	if err != nil {
		return "", err
	}
	ref, err := base.Parse(link)
	if err != nil {
		return "", errors.New("its address is no URL: " + link)
	}
	return ref.String(), nil
}

// An articlePlace is what an article's file name says of it.
type articlePlace struct {
	path string // without extension; of a directory's index, that of the directory
	slug string // its last part, without a date at its start
	date time.Time
}

var datedName = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2})-(.+)$`)

func placeOf(name string) (at articlePlace) {
	at.path = strings.TrimSuffix(name, path.Ext(name))
	if path.Base(at.path) == "index" && at.path != "index" {
		at.path = path.Dir(at.path)
	}
	at.slug = path.Base(at.path)
	if m := datedName.FindStringSubmatch(at.slug); m != nil { // Jekyll's
		if date, err := time.Parse(time.DateOnly, m[1]); err == nil {
			at.slug, at.date = m[2], date
		}
	}
	return at
}

// The names that a pattern may have in braces.
var patternName = regexp.MustCompile(`\{[a-z]*\}`)

// checkPattern refuses names that no pattern may have.
func checkPattern(flag, pattern string) error {
	for _, name := range patternName.FindAllString(pattern, -1) {
		if !slices.Contains([]string{"{path}", "{slug}", "{year}", "{month}", "{day}"}, name) {
			return fmt.Errorf("%s: there is no %s, but {path}, {slug}, {year}, {month} and {day}", flag, name)
		}
	}
	return nil
}

// expand fills in a pattern.
func (s *markdownSite) expand(pattern string, at articlePlace) (string, error) {
	if at.date.IsZero() && strings.ContainsAny(strings.NewReplacer("{path}", "", "{slug}", "").Replace(pattern), "{") {
		return "", errors.New("it has no date, which is to be part of its address: " + pattern)
	}
	escaped := (&url.URL{Path: at.path}).EscapedPath()
	return strings.NewReplacer("{path}", escaped, "{slug}", url.PathEscape(at.slug), "{year}", at.date.Format("2006"),
		"{month}", at.date.Format("01"), "{day}", at.date.Format("02")).Replace(pattern), nil
}
