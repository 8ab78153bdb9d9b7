package main

import (
	"errors"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// The recipes of publish/README.md are followed as they are written, with the
// generators themselves, on sites with awkward names, dates and addresses.

var (
	fenced   = regexp.MustCompile("(?s)```([a-z-]+)\n(.*?)```")
	fileName = regexp.MustCompile(`^(?:# |\{\{- /\* )(\S+)`)
)

// recipe returns the blocks under a heading: files by name, and the commands.
func recipe(t *testing.T, heading string) (files map[string]string, commands string) {
	text := feedtest.ReadFile(t, "../../publish/README.md")
	_, text2, ok := strings.Cut(string(text), "\n#### "+heading+"\n")
	require.True(t, ok, "there is no such recipe: %s", heading)
	text2, _, _ = strings.Cut(text2, "\n##")
	files = map[string]string{}
	for _, block := range fenced.FindAllStringSubmatch(text2, -1) {
		if block[1] == "sh" {
			commands += block[2]
			continue
		}
		name := fileName.FindStringSubmatch(block[2])
		require.NotNil(t, name, block[2])
		files[name[1]] = block[2]
	}
	require.NotEmpty(t, commands)
	return files, commands
}

// A generatedSite is a site whose recipes are tried.
type generatedSite struct {
	program string
	files   map[string]string
	config  string // to which recipes add
	built   string // the directory
	feed    string // the subscription document
	pages   []string
	warns   int // articles with tags in Markdown
}

func hugoSite() generatedSite {
	article := func(matter, text string) string { return "---\n" + matter + "\n---\n" + text + "\n" }
	return generatedSite{
		program: "hugo", config: "hugo.toml", built: "public", feed: "static/feeds/feed.atom", warns: 1,
		files: map[string]string{
			"hugo.toml":                              "baseURL = \"https://example.org/\"\ntitle = \"Ann writes\"\ntimeZone = \"Pacific/Auckland\"\n",
			"layouts/_default/single.html":           "<html><body>{{ .Content }}</body></html>",
			"layouts/_default/list.html":             "<html><body>{{ .Title }}</body></html>",
			"content/about.md":                       article("title: About", "No article"),
			"content/posts/first.md":                 article("title: First\ndate: 2003-10-13T18:30:02Z\ntags: [a, b]\ncategories: [b]", "Some *text*."),
			"content/posts/With Case and  Spaces.md": article("title: Spaces\ndate: 2003-10-14", "X"),
			"content/posts/slugged.md":               article("title: Slugged\nslug: \"Another Name\"\ndate: 2003-10-15T00:30:00+02:00", "{{< highlight go >}}x{{< /highlight >}} <img src=\"a.png\">"),
			"content/posts/deep/er/CamelCase.md":     article("title: Deep\ndate: 2003-10-15 23:30:00", "`{{</* code */>}}` is no short code"),
			"content/posts/expired.md":               article("title: Expired\ndate: 2003-10-16\nexpiryDate: 2004-01-01", "X"),
			"content/posts/draft.md":                 article("title: Draft\ndate: 2003-10-17\ndraft: true", "X"),
			"content/posts/future.md":                article("title: Future\ndate: 2999-10-17", "X"),
			"content/posts/Ünïcode & more!.md":       article("title: Ünïcode & more\ndate: 2003-10-18", "X"),
			"content/posts/own.md":                   article("title: Own address\nurl: /elsewhere/Own.html\ndate: 2003-10-19", "X"),
			"content/posts/bundle/index.md":          "+++\ntitle = \"Bundle\"\ndate = 2003-10-20\n+++\nX\n",
		},
		pages: []string{
			"posts/first/index.html", "posts/with-case-and-spaces/index.html", "posts/another-name/index.html",
			"posts/deep/er/camelcase/index.html", "posts/ünïcode-more/index.html", "elsewhere/Own.html", "posts/bundle/index.html",
		},
	}
}

func jekyllSite() generatedSite {
	article := func(matter, text string) string { return "---\nlayout: default\n" + matter + "\n---\n" + text + "\n" }
	return generatedSite{
		program: "jekyll", config: "_config.yml", built: "_site", feed: "feeds/feed.atom", warns: 1,
		files: map[string]string{
			"_config.yml":                           "title: Ann writes\nurl: https://example.org\ntimezone: America/New_York\n",
			"_layouts/default.html":                 "<html><body>{{ content }}</body></html>",
			"_posts/2003-12-13-welcome.md":          article("title: Welcome", "Some *text*."),
			"_posts/2003-12-14-With Case and it.md": article("title: Spaces\ncategories: [News, Big Stories]", "X {{ page.title }}"),
			"_posts/2003-12-15-late.md":             article("title: Late\ndate: 2003-12-15 03:30:00 +0000", "X"),
			"_posts/2003-12-16-slugged.md":          article("title: Slug\nslug: other-Name", "X"),
			"_posts/2003-12-17-own.md":              article("title: Own\npermalink: /own/address.html", "X"),
			"_posts/2003-12-18-Ünï & more.md":       article("title: Ünï & more", "X"),
			"_posts/2003-12-18-unpublished.md":      article("title: Unpublished\npublished: false", "X"),
			"_posts/2999-12-18-future.md":           article("title: Future", "X"),
		},
		pages: []string{
			"2003/12/13/welcome.html", "news/big stories/2003/12/14/With-Case-and-it.html", "2003/12/14/late.html",
			"2003/12/16/other-Name.html", "own/address.html", "2003/12/18/Ünï-&-more.html",
		},
	}
}

func TestSiteGenerators(t *testing.T) {
	feedtest.Long(t)
	for heading, site := range map[string]generatedSite{
		"From Hugo's output": hugoSite(), "From Hugo's Markdown": hugoSite(),
		"From Jekyll's output": jekyllSite(), "From Jekyll's Markdown": jekyllSite(),
	} {
		t.Run(heading, func(t *testing.T) {
			if _, err := exec.LookPath(site.program); err != nil {
				require.NotEqual(t, "required", os.Getenv("FEEDHISTORY_GENERATORS"))
				t.Skip(site.program + " is not installed")
			}
			files, commands := recipe(t, heading)
			dir := t.TempDir()
			for name, text := range site.files {
				siteFile(t, filepath.Join(dir, name), text)
			}
			for name, text := range files {
				if name == site.config {
					text = site.files[name] + text
				}
				siteFile(t, filepath.Join(dir, name), text)
			}
			said := follow(t, dir, commands)
			if strings.Contains(heading, "Markdown") {
				require.Contains(t, said, "1 entry has unexpanded tags of the site generator")
			} else {
				require.NotContains(t, said, "unexpanded tags of the site generator")
			}
			require.NotContains(t, said, "left out: without")
			site.check(t, dir)
			require.Contains(t, follow(t, dir, commands), "0 new · 0 changed · ", "another build changes nothing")
			site.misses(t, dir, commands)
		})
	}
}

func siteFile(t *testing.T, name, text string) {
	require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o700))
	require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
}

// follow runs a recipe's commands.
func follow(t *testing.T, dir, commands string) string {
	said, err := try(dir, commands)
	require.NoError(t, err, said)
	return strings.Join(strings.Fields(said), " ")
}

func try(dir, commands string) (string, error) {
	shell := exec.Command("sh", "-ec", commands)
	shell.Dir = dir
	out, err := shell.CombinedOutput()
	return string(out), err
}

// check requires that each page has its entry, and each entry its page, by the
// rules of a plain web server.
func (s *generatedSite) check(t *testing.T, dir string) {
	feed, err := os.Open(filepath.Join(dir, s.feed))
	require.NoError(t, err)
	defer feed.Close()
	doc, err := feedhistory.Parse(feed, "")
	require.NoError(t, err)
	home, _ := doc.Links.Rel(feedhistory.RelAlternate)
	require.Equal(t, "https://example.org/", home.Href)
	var pages []string
	for _, e := range doc.Entries {
		link, _ := e.Links.Rel(feedhistory.RelAlternate)
		name, ok := strings.CutPrefix(link.Href, "https://example.org/")
		require.True(t, ok, link.Href)
		name, err := url.PathUnescape(name)
		require.NoError(t, err)
		if strings.HasSuffix(name, "/") {
			name = path.Join(name, "index.html")
		}
		require.FileExists(t, filepath.Join(dir, s.built, name))
		pages = append(pages, name)
	}
	require.ElementsMatch(t, s.pages, pages)
	require.FileExists(t, filepath.Join(dir, s.built, "feeds/feed.atom"), "the feed is part of the site")
	_, err = os.Stat(filepath.Join(dir, s.built, "feeds/.lock"))
	require.True(t, errors.Is(err, fs.ErrNotExist))
}

// misses requires that publish notices a missing page.
func (s *generatedSite) misses(t *testing.T, dir, commands string) {
	lines := strings.SplitAfter(commands, "\n")
	publish := strings.Join(lines[1:len(lines)-2], "") // not the builds
	page := filepath.Join(dir, s.built, s.pages[1])
	require.NoError(t, os.Remove(page))
	before := feedtest.ReadFile(t, filepath.Join(dir, s.feed))
	said, err := try(dir, publish)
	require.Error(t, err)
	require.Contains(t, said, "missing pages; nothing is published")
	require.Contains(t, said, "\n  https://example.org/")
	after := feedtest.ReadFile(t, filepath.Join(dir, s.feed))
	require.Equal(t, before, after)
}
