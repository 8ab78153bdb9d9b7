package sitemap

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// A generated site is made by a real generator from 300 posts, with tags, other pages and,
// if the generator has them, lists in parts and translations.
type generated struct {
	generator string
	required  string // the variable with which it runs
	build     []string
	posts     string // the format of a post's file name, of its day and number
	front     string // further lines of a post's front matter
	files     map[string]string
	most      string // the file and text that limits the feed
	unlimited string // the same without a limit
	out, feed string
	mode      string
	others    []string // entries of the feed without a limit that are no posts
}

const generatedPosts = 300

func generators() []generated {
	return []generated{
		{
			generator: "hugo", required: "FEEDHISTORY_GENERATORS", build: []string{"hugo", "--quiet"}, posts: "content/posts/%s-number-%03d.md",
			most: "rssLimit = 10\n", unlimited: "rssLimit = -1\n", out: "public", feed: "index.xml", mode: modeSitemap,
			others: []string{"https://example.org/about/"},
			files: map[string]string{
				"config.toml": `baseURL = "https://example.org/"
title = "A blog"
paginate = 10
enableRobotsTXT = true
defaultContentLanguage = "en"
[languages.en]
languageCode = "en"
weight = 1
[languages.fr]
languageCode = "fr"
weight = 2
`,
				"layouts/_default/baseof.html": `<!doctype html><html lang="{{ .Site.Language.Lang }}"><head><title>{{ .Title }} · {{ .Site.Title }}</title>
<link rel="canonical" href="{{ .Permalink }}">{{ template "_internal/opengraph.html" . }}{{ template "_internal/schema.html" . }}</head>
<body><nav><a href="/">Home</a> <a href="/about/">About</a> <a href="/tags/">Tags</a></nav><main>{{ block "main" . }}{{ end }}</main></body></html>`,
				"layouts/_default/single.html": `{{ define "main" }}<article><h1>{{ .Title }}</h1>{{ with .Date }}<time datetime="{{ .Format "2006-01-02T15:04:05Z07:00" }}">{{ . }}</time>{{ end }}
{{ .Content }}{{ range .Params.tags }}<a href="/tags/{{ . }}/">{{ . }}</a> {{ end }}</article>{{ end }}`,
				"layouts/_default/list.html":                `{{ define "main" }}<h1>{{ .Title }}</h1>{{ range (.Paginate .Pages).Pages }}<p><a href="{{ .Permalink }}">{{ .Title }}</a> {{ .Summary }}</p>{{ end }}{{ template "_internal/pagination.html" . }}{{ end }}`,
				"layouts/index.html":                        `{{ define "main" }}<h1>{{ .Title }}</h1>{{ range (.Paginate (where .Site.RegularPages "Section" "posts")).Pages }}<p><a href="{{ .Permalink }}">{{ .Title }}</a></p>{{ end }}{{ template "_internal/pagination.html" . }}{{ end }}`,
				"content/about.md":                          "---\ntitle: About\n---\n" + "I write about things. ",
				"content/posts/2001-01-01-number-001.fr.md": "---\ntitle: Numéro 1\ndate: 2001-01-01\n---\n" + "Un texte en français, avec des mots. ",
				"content/posts/2001-01-03-number-003.fr.md": "---\ntitle: Numéro 3\ndate: 2001-01-03\n---\n" + "Un texte en français, avec des mots. ",
			},
		},
		{ // Debian has the theme that Jekyll uses for new sites, but no plugin for sitemaps
			generator: "jekyll", required: "FEEDHISTORY_GENERATORS", build: []string{"jekyll", "build", "-q"}, posts: "_posts/%s-number-%03d.md", front: "layout: post\n",
			most: "feed:\n  posts_limit: 10\n", unlimited: "feed:\n  posts_limit: 1000\n", out: "_site", feed: "feed.xml", mode: modeArchive,
			files: map[string]string{
				"_config.yml": "title: A blog\nurl: https://example.org\ntheme: minima\nplugins: [jekyll-feed, jekyll-seo-tag]\n",
				"index.md":    "---\nlayout: home\n---\n",
				"about.md":    "---\nlayout: page\ntitle: About\npermalink: /about/\n---\nI write about things.\n",
			},
		},
		{
			generator: "jekyll with a sitemap", required: "FEEDHISTORY_GENERATORS", build: []string{"jekyll", "build", "-q"}, posts: "_posts/%s-number-%03d.md", front: "layout: post\n",
			most: "feed:\n  posts_limit: 10\n", unlimited: "feed:\n  posts_limit: 1000\n", out: "_site", feed: "feed.xml", mode: modeSitemap,
			files: map[string]string{
				"_config.yml": "title: A blog\nurl: https://example.org\npermalink: /:categories/:year/:title/\nplugins: [jekyll-feed, jekyll-seo-tag]\ntheme: minima\n",
				"about.md":    "---\nlayout: page\ntitle: About\npermalink: /about/\n---\nI write about things.\n",
				"sitemap.xml": "---\n---\n<urlset>{% for p in site.posts %}<url><loc>{{ p.url | absolute_url }}</loc><lastmod>{{ site.time | date_to_xmlschema }}</lastmod></url>{% endfor %}{% for p in site.pages %}<url><loc>{{ p.url | absolute_url }}</loc></url>{% endfor %}</urlset>",
			},
		},
		{
			generator: "eleventy", required: "FEEDHISTORY_RECIPES", build: []string{"npx", "--no-install", "eleventy", "--quiet"}, posts: "posts/%s-number-%03d.md",
			most: "export const most = 10;\n", unlimited: "export const most = 0;\n", out: "_site", feed: "feed.xml", mode: modeSitemap,
			files: map[string]string{
				"package.json":     `{"type": "module"}`,
				"posts/posts.json": `{"tags": "posts", "layout": "post.njk"}`,
				"eleventy.config.js": `import { feedPlugin } from "@11ty/eleventy-plugin-rss";
import { most } from "./most.js";
export default (config) => {
	config.addPlugin(feedPlugin, { type: "atom", outputPath: "/feed.xml", collection: { name: "posts", limit: most },
		metadata: { language: "en", title: "A blog", base: "https://example.org/", author: { name: "Ann" } } });
};`,
				"_includes/post.njk":  `<!doctype html><html lang="en"><head><title>{{ title }}</title></head><body><a href="/">Home</a><article><h1>{{ title }}</h1><time datetime="{{ page.date.toISOString() }}">then</time>{{ content | safe }}</article></body></html>`,
				"about.md":            "---\ntitle: About\nlayout: about.njk\n---\nI write about things.\n",
				"_includes/about.njk": `<!doctype html><html lang="en"><title>{{ title }}</title><h1>{{ title }}</h1>{{ content | safe }}</html>`,
				"sitemap.njk": "---\npermalink: /sitemap.xml\neleventyExcludeFromCollections: true\n---\n" +
					`<urlset>{% for p in collections.all %}<url><loc>https://example.org{{ p.url }}</loc><lastmod>{{ p.date.toISOString() }}</lastmod></url>{% endfor %}</urlset>`,
			},
		},
	}
}

// source writes the sources of the site into a folder, and returns a function that builds it
// with a limit for its feed.
func (g *generated) source(t *testing.T) func(limit string) string {
	feedtest.Program(t, g.required, g.build[0])
	dir := t.TempDir()
	write := func(name, text string) {
		name = filepath.Join(dir, filepath.FromSlash(name))
		require.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
		require.NoError(t, os.WriteFile(name, []byte(text), 0o644))
	}
	for name, text := range g.files {
		write(name, text)
	}
	if g.build[0] == "npx" {
		modules, err := filepath.EvalSymlinks("../../publish/recipes/" + g.generator + "/node_modules")
		require.NoError(t, err)
		require.NoError(t, os.Symlink(modules, filepath.Join(dir, "node_modules")))
	}
	b := &blog{}
	for i := 1; i <= generatedPosts; i++ {
		day := b.at(i*13 - 7000).Format("2006-01-02")
		text := strings.Repeat(fmt.Sprintf("A paragraph of number %d, with *some* words, and commas, and an [address](https://other.example/%d). ", i, i), 3)
		write(fmt.Sprintf(g.posts, day, i), fmt.Sprintf("---\ntitle: Number %d & <more>\ndate: %s\n%stags: [a%d]\n---\n%s\n\n%[5]s\n\n%[5]s\n", i, day, g.front, i%7, text))
	}
	return func(limit string) string {
		config, text := "most.js", ""
		for _, name := range []string{"config.toml", "_config.yml"} {
			if g.files[name] != "" {
				config, text = name, g.files[name]
			}
		}
		if config == "config.toml" {
			write(config, limit+text)
		} else {
			write(config, text+limit)
		}
		cmd := exec.CommandContext(t.Context(), g.build[0], g.build[1:]...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "TZ=UTC")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return filepath.Join(dir, g.out)
	}
}

// Of sites that real generators have made, with a feed of ten entries, all posts come, with the
// IDs of the same site's feed without a limit, and nothing else.
func TestGenerators(t *testing.T) {
	feedtest.Long(t)
	for _, g := range generators() {
		t.Run(g.generator, func(t *testing.T) {
			build := g.source(t)
			text := feedtest.ReadFile(t, filepath.Join(build(g.unlimited), g.feed))
			all, err := feedhistory.Parse(strings.NewReader(string(text)), "https://example.org/"+g.feed)
			require.NoError(t, err)
			require.Len(t, all.Entries, generatedPosts+len(g.others))
			want := map[string]*feedhistory.Entry{}
			for _, e := range all.Entries {
				want[e.ID] = e
			}
			for _, id := range g.others {
				require.NotNil(t, want[id])
				delete(want, id)
			}

			var requests feedtest.List[string]
			files := http.FileServer(http.Dir(build(g.most)))
			c := &feedhistory.Client{Tries: 1, AllowPrivate: true, Transport: feedtest.Direct{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(r.URL.Path)
				files.ServeHTTP(w, r)
			})}}
			r, err := (&backfill.Backfill{HTTP: c, Methods: methods()}).Fetch(context.Background(), "https://example.org/"+g.feed, backfill.Probe{})
			require.NoError(t, err)
			require.Equal(t, backfill.Probe{Method: "sitemap", Mode: g.mode}, r.Probe)
			require.Equal(t, feedhistory.VerdictLossy, r.Verdict())
			got := map[string]bool{}
			for _, e := range r.History.Entries {
				other := want[e.ID]
				require.NotNil(t, other, "%s was never published", e.ID)
				require.Equal(t, other.Title().Plain(), e.Title().Plain())
				require.True(t, other.Time().Equal(e.Time()), "%s: %s, %s", e.ID, other.Time(), e.Time())
				require.Equal(t, linkOf(other), linkOf(e))
				require.Contains(t, e.Content().Plain()+e.Summary().Plain(), "with some words", e.ID)
				got[e.ID] = true
			}
			require.Len(t, got, generatedPosts)
			t.Logf("%d of %d posts, nothing else, with %d requests", len(got), len(want), len(requests.All()))
		})
	}
}
