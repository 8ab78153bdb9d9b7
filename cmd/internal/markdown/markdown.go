// Package markdown reads the articles of a site written in Markdown.
package markdown

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
	"unicode"

	"github.com/BurntSushi/toml"
	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer/html"
	"go.yaml.in/yaml/v3"
)

// A Site is a directory of articles in Markdown with front matter, as site
// generators such as Hugo and Jekyll use them.
type Site struct {
	Files fs.FS
	Base  string         // the beginning of the id of an article without another id or an address
	Link  string         // pattern of an article's address; "" if there is none
	ID    string         // pattern of an article's id; "" means the address
	Now   time.Time      // articles with a later date are left out, as generators do
	Zone  *time.Location // of times without a zone, and of dates in addresses

	Left map[string]int // how many articles were left out, by reason
}

// These are the reasons for leaving an article out.
const (
	LeftPlain  = "without front matter"
	LeftDraft  = "drafts"
	LeftFuture = "dated in the future"

	LeftExpired = "expired"
)

// Records reads the site's articles.
func (s *Site) Records() (records []*publish.Line, err error) {
	s.Left = map[string]int{}
	from := map[string]string{} // an id's file
	err = fs.WalkDir(s.Files, ".", func(name string, d fs.DirEntry, err error) error {
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
			return fmt.Errorf("%s: it has the same id as %s: %s", name, other, r.ID)
		}
		from[r.ID] = name
		records = append(records, r)
		return nil
	})
	return records, err
}

// isMarkdown reports whether a file is an article. Hugo's _index.md is not: it describes a
// list of articles.
func isMarkdown(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return (ext == ".md" || ext == ".markdown") && path.Base(name) != "_index"+path.Ext(name)
}

// article reads one article; nil if it is left out.
func (s *Site) article(name string) (*publish.Line, error) {
	text, err := fs.ReadFile(s.Files, name)
	if err != nil {
		return nil, err
	}
	front, body, err := splitFrontMatter(text)
	if err != nil {
		return nil, err
	}
	at := placeOf(name, s.Zone)
	published, dateErr := front.time(s.Zone, "date", "publishDate", "published_at")
	if published.IsZero() {
		published = at.date
	}
	shown, showErr := front.time(s.Zone, "publishDate") // in Hugo, an article may appear at a time other than its date
	expires, expireErr := front.time(s.Zone, "expiryDate", "unpublishdate", "expirydate")
	switch {
	case front == nil:
		s.Left[LeftPlain]++
		return nil, nil
	case front["draft"] == true || front["published"] == false:
		s.Left[LeftDraft]++
		return nil, nil
	case dateErr != nil || showErr != nil || expireErr != nil:
		return nil, cmp.Or(dateErr, showErr, expireErr)
	case published.After(s.Now) || shown.After(s.Now):
		s.Left[LeftFuture]++
		return nil, nil
	case !expires.IsZero() && !expires.After(s.Now):
		s.Left[LeftExpired]++
		return nil, nil
	}
	updated, err := front.time(s.Zone, "lastmod", "updated", "last_modified_at", "modified")
	if err != nil {
		return nil, err
	}
	at.date = published
	if slug := front.text("slug"); slug != "" {
		at.path, at.Slug = path.Join(path.Dir(at.path), slug), slug
	}
	at.categories = front.list("categories", "category")
	return s.record(front, body, at, updated)
}

func (s *Site) record(front FrontMatter, body []byte, at ArticlePlace, updated time.Time) (*publish.Line, error) {
	link, err := s.Address(front, at)
	if err != nil {
		return nil, err
	}
	id := front.text("id", "guid")
	if id == "" {
		if id, err = s.Expand(s.ID, at); err != nil {
			return nil, err
		}
	}
	r := &publish.Line{EntryJSON: compose.EntryJSON{
		ID:        cmp.Or(id, link, s.Base+"#"+(&url.URL{Fragment: at.path}).EscapedFragment()),
		Title:     feedhistory.Text{Body: cmp.Or(front.text("title"), at.Slug)},
		Published: show.Time(at.date), Updated: show.Time(updated),
		Summary: feedhistory.Text{Body: front.text("description", "summary", "excerpt")},
	}}
	if link != "" {
		r.Links = feedhistory.Links{{Rel: "alternate", Href: link, Type: "text/html"}}
	}
	for _, name := range front.list("author", "authors") {
		r.Authors = append(r.Authors, feedhistory.Person{Name: name})
	}
	for _, term := range front.list("categories", "category", "tags") {
		c := compose.Category{Term: term}
		if !slices.Contains(r.Categories, c) {
			r.Categories = append(r.Categories, c)
		}
	}
	var content bytes.Buffer
	if err := markdown.Convert(body, &content); err != nil {
		return nil, err
	}
	r.Content = feedhistory.Text{Type: "html", Body: strings.TrimSpace(content.String()), Base: cmp.Or(link, s.Base)}
	return r, nil
}

// markdown renders articles much as Hugo and Jekyll do. It keeps HTML in articles, because
// they are the site's own.
var markdown = goldmark.New(goldmark.WithExtensions(extension.GFM, extension.Footnote),
	goldmark.WithRendererOptions(html.WithUnsafe()))

// Address returns the address of an article on the site; "" if it is unknown.
func (s *Site) Address(front FrontMatter, at ArticlePlace) (string, error) {
	link := front.text("canonical_url", "url", "permalink")
	if !strings.Contains(link, "/") || strings.Contains(link, "/:") { // Jekyll's patterns, such as /:year/:title, and their names
		var err error
		if link, err = s.Expand(s.Link, at); link == "" {
			return "", err
		}
	}
	base, err := url.Parse(s.Base)
	if err != nil {
		return "", err
	}
	ref, err := base.Parse(link)
	if err != nil {
		return "", errors.New("its address is not a URL: " + link)
	}
	return ref.String(), nil
}

// An ArticlePlace has the properties of an article in its file's name.
type ArticlePlace struct {
	path string    // without the extension; for the index of a directory, the directory's path
	Slug string    // the last part of the path, without a date at its start
	date time.Time // the article's date; zero if it has none

	categories []string
}

var datedName = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2})-(.+)$`)

func placeOf(name string, zone *time.Location) (at ArticlePlace) {
	at.path = strings.TrimSuffix(name, path.Ext(name))
	if path.Base(at.path) == "index" && at.path != "index" {
		at.path = path.Dir(at.path)
	}
	at.Slug = path.Base(at.path)
	if m := datedName.FindStringSubmatch(at.Slug); m != nil { // Jekyll's
		if date, err := time.ParseInLocation(time.DateOnly, m[1], zone); err == nil {
			at.Slug, at.date = m[2], date
		}
	}
	return at
}

// patternName matches a name in braces, in a pattern.
var patternName = regexp.MustCompile(`\{[a-z]*\}`)

// CheckPattern refuses unknown names in a pattern.
func CheckPattern(flag, pattern string) error {
	for _, name := range patternName.FindAllString(pattern, -1) {
		if !slices.Contains([]string{"{path}", "{slug}", "{categories}", "{year}", "{month}", "{day}"}, name) {
			return fmt.Errorf("%s: unknown %s; a pattern can have {path}, {slug}, {categories}, {year}, {month} and {day}", flag, name)
		}
	}
	return nil
}

// Expand fills in a pattern. It writes the path as Hugo writes it in addresses, the slug
// and the categories as Jekyll does, and the date in the site's zone.
func (s *Site) Expand(pattern string, at ArticlePlace) (string, error) {
	undated := strings.NewReplacer("{path}", "", "{slug}", "", "{categories}", "").Replace(pattern)
	if at.date.IsZero() && strings.Contains(undated, "{") {
		return "", errors.New("it has no date, and its address contains one: " + pattern)
	}
	date := at.date.In(s.Zone)
	path, slug, categories := hugoPath(at.path), jekyllSlug(at.Slug), strings.ToLower(strings.Join(at.categories, "/"))
	if len(at.categories) == 0 {
		pattern = strings.ReplaceAll(pattern, "{categories}/", "")
	}
	return strings.NewReplacer("{path}", (&url.URL{Path: path}).EscapedPath(), "{slug}", url.PathEscape(slug),
		"{categories}", (&url.URL{Path: categories}).EscapedPath(), "{year}", date.Format("2006"),
		"{month}", date.Format("01"), "{day}", date.Format("02")).Replace(pattern), nil
}

// hugoPath returns a file's path as Hugo writes it in an address: in lower case, with
// hyphens for white space, and without most other marks.
func hugoPath(name string) string {
	var b strings.Builder
	space, hyphen := false, false
	for i, r := range name {
		if encoded := r == '%' && percentEncoded.MatchString(name[i:]); !encoded && !strings.ContainsRune("./\\_#+~-@", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) {
			space = space || b.Len() > 0 && !hyphen && unicode.IsSpace(r)
			continue
		}
		hyphen = r == '-'
		if space && !hyphen {
			b.WriteByte('-')
		}
		space = false
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// jekyllSlug returns a slug as Jekyll writes it in an address.
func jekyllSlug(title string) string {
	return strings.Trim(notInSlug.ReplaceAllString(title, "-"), "-")
}

var percentEncoded = regexp.MustCompile(`^%[0-9A-Fa-f]{2}`)

var notInSlug = regexp.MustCompile(`[^\p{M}\p{L}\p{Nd}._~!$&'()+,;=@]+`)

// A FrontMatter is the names and values before an article's text.
type FrontMatter map[string]any

// fences are the lines around front matter, and how to find the second one.
var fences = map[string]*regexp.Regexp{"---": regexp.MustCompile(`(?m)^---[ \t]*$\n?`), "+++": regexp.MustCompile(`(?m)^\+\+\+[ \t]*$\n?`)}

// splitFrontMatter splits a text into its front matter, which is YAML between lines of
// "---" or TOML between lines of "+++", and its body. Without front matter, front is nil.
func splitFrontMatter(text []byte) (front FrontMatter, body []byte, err error) {
	text = bytes.ReplaceAll(bytes.TrimPrefix(text, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
	first, rest, _ := bytes.Cut(text, []byte("\n"))
	fence := string(bytes.TrimRight(first, " \t"))
	if fences[fence] == nil {
		return nil, text, nil
	}
	at := fences[fence].FindIndex(rest)
	if at == nil {
		return nil, nil, fmt.Errorf("the front matter has no end: there is no second line %q", fence)
	}
	matter, values := rest[:at[0]], map[string]any{}
	if fence == "+++" {
		err = toml.Unmarshal(matter, &values)
	} else {
		err = yaml.Unmarshal(matter, &values)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("the front matter: %w", err)
	}
	return values, rest[at[1]:], nil
}

// text returns the first text or number among the named values; "" if there is none.
func (f FrontMatter) text(names ...string) string {
	for _, name := range names {
		switch v := f[name].(type) {
		case string:
			if v = strings.TrimSpace(v); v != "" {
				return v
			}
		case int, int64, uint64, float64:
			return fmt.Sprint(v)
		}
	}
	return ""
}

// list returns the items of all the named values, which are texts, lists of texts, or
// objects with a name.
func (f FrontMatter) list(names ...string) (list []string) {
	for _, name := range names {
		values, ok := f[name].([]any)
		if !ok {
			values = []any{f[name]}
		}
		for _, v := range values {
			one := FrontMatter{"name": v}
			if object, ok := v.(map[string]any); ok {
				one = object
			}
			if s := one.text("name"); s != "" {
				list = append(list, s)
			}
		}
	}
	return list
}

// dateLayouts are the layouts of dates in front matter, in addition to those YAML and
// TOML parse.
var dateLayouts = []string{
	time.RFC3339Nano, "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05 -07:00", "2006-01-02 15:04:05 MST",
	"2006-01-02 15:04 -0700", "2006-01-02T15:04:05", time.DateTime, "2006-01-02T15:04", "2006-01-02 15:04", time.DateOnly,
}

// time returns the first existing one of the named values; zero if there is none. A time
// without a zone is in the given one, so the result does not depend on the machine.
func (f FrontMatter) time(zone *time.Location, names ...string) (time.Time, error) {
	for _, name := range names {
		switch v := f[name].(type) {
		case time.Time:
			if strings.HasSuffix(v.Location().String(), "-local") { // TOML's times without zone
				v = time.Date(v.Year(), v.Month(), v.Day(), v.Hour(), v.Minute(), v.Second(), v.Nanosecond(), zone)
			}
			return v, nil
		case string:
			for _, layout := range dateLayouts {
				if t, err := time.ParseInLocation(layout, strings.TrimSpace(v), zone); err == nil {
					return t, nil
				}
			}
			return time.Time{}, errors.New(name + ": not a time such as 2003-12-13T18:30:02Z: " + v)
		}
	}
	return time.Time{}, nil
}
