package readers_test

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// A savedBlog is a model of a saved site whose feed shows the last three of twenty posts.
type savedBlog struct{ guid string }

const savedSite = "https://a.example"

func postLink(i int) string { return fmt.Sprintf("%s/2020/post-%02d/", savedSite, i) }

func postTime(i int) time.Time { return time.Date(2020, 1, i, 12, 0, 0, 0, time.UTC) }

func (b savedBlog) feed(from, to int) string {
	text := `<rss version="2.0"><channel><title>A blog</title><link>` + savedSite + `/</link>`
	for i := to; i >= from; i-- {
		guid := postLink(i)
		if b.guid != "" {
			guid = fmt.Sprintf(b.guid, i*i)
		}
		text += fmt.Sprintf(`<item><title>Post %d</title><link>%s</link><guid isPermaLink="false">%s</guid><pubDate>%s</pubDate></item>`, i, postLink(i), guid, postTime(i).Format(time.RFC1123Z))
	}
	return text + "</channel></rss>"
}

func savedPage(link, title string, at time.Time, text string) string {
	return fmt.Sprintf(`<html lang="en"><head><title>%s</title><link rel="canonical" href="%s"><script type="application/ld+json">{"@context":"https://schema.org","@type":"BlogPosting","headline":%q,"datePublished":%q}</script></head><body><article><h1>%[1]s</h1>%[5]s</article></body></html>`,
		title, link, title, at.Format(time.RFC3339), strings.Repeat("<p>"+text+" is in this paragraph, which has a few more words, some commas, and no end of them, as paragraphs of posts do.</p>", 6))
}

func pageRecord(at, date, text string) string {
	return warcOf("response", at, date, "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"+text)
}

// records are those of the feed, of all posts, and of much that is no post.
func (b savedBlog) records() (all []string) {
	const older, newer = "2023-11-14T22:13:20Z", "2023-12-14T22:13:20Z"
	for i := 1; i <= 20; i++ {
		link := postLink(i)
		saved := strings.Replace(link, "https://", "http://www.", 1)
		all = append(all, pageRecord(saved, newer, savedPage(link, fmt.Sprintf("Post %d", i), postTime(i), "Newer text")))
		all = append(all, pageRecord(saved, older, savedPage(link, fmt.Sprintf("Post %d as it was", i), postTime(i), "Older text")))
	}
	all = append(all, warcOf("response", savedSite+"/feed", newer, answerOf("200 OK", "", b.feed(18, 20))))
	post := func(link string) string { return savedPage(link, "No post", postTime(1), "Of no post") }
	bomb := "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Encoding: gzip\r\n\r\n" + zipped(strings.Repeat(" ", 70<<20))
	return append(all,
		pageRecord(savedSite+"/tags/a/", newer, post(savedSite+"/tags/a/")),
		pageRecord("https://b.example/2020/post-30/", newer, post("https://b.example/2020/post-30/")),
		pageRecord(savedSite+"/2020/post-30/", newer, savedPage(savedSite+"/2020/post-30/", "Page not found", postTime(1), "Nothing here")),
		pageRecord(savedSite+"/2020/post-01/?share=x", newer, post(postLink(1))),
		pageRecord(savedSite+"/2020/post-31/", newer, savedPage(postLink(1), "Post 1", postTime(1), "Newer text")), // a copy
		pageRecord(savedSite+"/sitemap.xml", newer, post(savedSite+"/sitemap.xml")),
		warcOf("response", savedSite+"/2020/post-32/", newer, answerOf("404 Not Found", "", post(savedSite+"/2020/post-32/"))),
		warcOf("revisit", savedSite+"/2020/post-33/", newer, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"),
		warcOf("request", savedSite+"/2020/post-34/", newer, "GET / HTTP/1.1\r\n\r\n"),
		strings.Replace(pageRecord(savedSite+"/2020/post-35/", newer, post(savedSite+"/2020/post-35/")), "WARC-Date", "WARC-Truncated: length\r\nWARC-Date", 1),
		warcOf("response", savedSite+"/2020/post-36/", newer, bomb),
		pageRecord(savedSite+"/2020/post-37/", newer, strings.Repeat("<div>", 100_000)),
		pageRecord(savedSite+"/2020/post-38/", newer, "<html lang=de><title>Kein Beitrag</title>"+post(savedSite + "/2020/post-38/")[len(`<html lang="en">`):]),
	)
}

// Of the pages of a feed's site, the posts join its history, as at the site itself: each once,
// as it was last saved. The publisher's own copies count more, and a second import adds nothing.
func TestWARCPages(t *testing.T) {
	const feed = savedSite + "/feed"
	for name, b := range map[string]savedBlog{"address": {}, "unguessable": {"urn:number:%03d"}} {
		t.Run(name, func(t *testing.T) {
			records := b.records()
			slices.Reverse(records)
			for file, text := range map[string]string{"a.warc": strings.Join(b.records(), ""), "b.warc.gz": zipped(strings.Join(records, ""))} {
				s := source(t, "warc", writeWARC(t, file, text))
				r := imported(t, s, nil, "")
				require.NoError(t, r.err)
				require.Len(t, r.damaged, 1, "the bomb")
				require.Contains(t, r.damaged[0], "post-36")
				require.Len(t, r.entries, 20)
				for i := 1; i <= 20; i++ {
					got := r.entries[fmt.Sprintf("Post %d", i)]
					require.NotNil(t, got, i)
					require.Equal(t, "warc", got.Copy.Source)
					require.Equal(t, postLink(i), got.Content.Link)
					require.True(t, got.Content.Published.Equal(postTime(i)))
					e, err := got.Entry()
					require.NoError(t, err)
					if i < 18 {
						require.Equal(t, "warc", e.KeptBy)
						require.Contains(t, e.Content().Plain(), "Newer text")
					} else {
						require.Empty(t, e.KeptBy)
					}
				}
				r.into(t, s, nil, "")
				require.Zero(t, r.sum.Added+r.sum.Changed, "nothing new comes of a second import")

				direct := feedtest.Direct{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(b.feed(1, 20))) })}
				m := &mirror.Mirror{Store: r.store, Client: &feedhistory.Client{Transport: direct}}
				_, err := m.Update(t.Context(), feed)
				require.NoError(t, err)
				n := 0
				for rec, err := range r.store.Entries(t.Context(), mirror.Query{Feed: feed}) {
					require.NoError(t, err)
					require.Empty(t, rec.Copy.Source, rec.ID)
					n++
				}
				require.Equal(t, 20, n)
			}
		})
	}
}

// A site's pages also join a mirrored feed the files do not have.
func TestWARCPagesOfMirroredFeed(t *testing.T) {
	const feed = savedSite + "/feed"
	b := savedBlog{}
	var pages []string
	for _, record := range b.records() {
		if !strings.Contains(record, "<rss") && !strings.Contains(record, "post-36") {
			pages = append(pages, record)
		}
	}
	direct := feedtest.Direct{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(b.feed(18, 20))) })}
	r := &result{store: mirror.NewMemory()}
	_, err := mirror.Subscribe(t.Context(), r.store, mirror.NewFeed(feed))
	require.NoError(t, err)
	_, err = (&mirror.Mirror{Store: r.store, Client: &feedhistory.Client{Transport: direct}}).Update(t.Context(), feed)
	require.NoError(t, err)
	s := source(t, "warc", writeWARC(t, "a.warc", strings.Join(pages, "")), feed)
	s.Mirrored = r.store
	r.into(t, s, nil, "")
	require.NoError(t, r.err)
	require.Empty(t, r.damaged)
	require.Len(t, r.entries, 20)
	require.Equal(t, 17, r.sum.Added)
}

// A site that Hugo has made and wget has saved comes back whole, when its server is gone.
func TestWARCPagesOfWget(t *testing.T) {
	feedtest.Long(t)
	wget, hugo := lookPath(t, "wget"), lookPath(t, "hugo")
	var files http.Handler
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { files.ServeHTTP(w, r) }))
	dir := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
	build := func(limit string) string {
		write("config.toml", limit+"\nbaseURL = \""+server.URL+"/\"\ntitle = \"A blog\"\npaginate = 10\n")
		cmd := exec.Command(hugo, "--quiet", "--cleanDestinationDir")
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "TZ=UTC")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return filepath.Join(dir, "public")
	}
	write("layouts/_default/baseof.html", `<!doctype html><html lang="en"><head><title>{{ .Title }} · {{ .Site.Title }}</title><link rel="canonical" href="{{ .Permalink }}"><link rel="alternate" type="application/rss+xml" href="/index.xml">{{ template "_internal/opengraph.html" . }}</head><body><a href="/about/">About</a> <a href="/tags/">Tags</a><main>{{ block "main" . }}{{ end }}</main></body></html>`)
	write("layouts/_default/single.html", `{{ define "main" }}<article><h1>{{ .Title }}</h1>{{ with .Date }}<time datetime="{{ .Format "2006-01-02T15:04:05Z07:00" }}">{{ . }}</time>{{ end }}{{ .Content }}{{ range .Params.tags }}<a href="/tags/{{ . }}/">{{ . }}</a> {{ end }}</article>{{ end }}`)
	write("layouts/_default/list.html", `{{ define "main" }}<h1>{{ .Title }}</h1>{{ range (.Paginate .Pages).Pages }}<p><a href="{{ .Permalink }}">{{ .Title }}</a> {{ .Summary }}</p>{{ end }}{{ template "_internal/pagination.html" . }}{{ end }}`)
	write("layouts/index.html", `{{ define "main" }}{{ range (.Paginate (where .Site.RegularPages "Section" "posts")).Pages }}<p><a href="{{ .Permalink }}">{{ .Title }}</a></p>{{ end }}{{ template "_internal/pagination.html" . }}{{ end }}`)
	write("content/about.md", "---\ntitle: About\n---\nI write about things.\n")
	for i := 1; i <= 300; i++ {
		text := strings.Repeat(fmt.Sprintf("A paragraph of number %d, with *some* words, and commas. ", i), 3)
		write(fmt.Sprintf("content/posts/number-%03d.md", i), fmt.Sprintf("---\ntitle: Number %d & <more>\ndate: %s\ntags: [a%d]\n---\n%s\n\n%[4]s\n", i, postTime(1).AddDate(0, 0, 5*i-1500).Format(time.DateOnly), i%7, text))
	}
	text := feedtest.ReadFile(t, filepath.Join(build("rssLimit = -1"), "index.xml"))
	all, err := feedhistory.Parse(strings.NewReader(string(text)), server.URL+"/index.xml")
	require.NoError(t, err)
	want := map[string]*feedhistory.Entry{}
	for _, e := range all.Entries {
		want[e.ID] = e
	}
	delete(want, server.URL+"/about/")
	require.Len(t, want, 300)

	files = http.FileServer(http.Dir(build("rssLimit = 10")))
	var saved []string
	for i, args := range [][]string{{"--no-warc-compression"}, {}} {
		name := filepath.Join(t.TempDir(), fmt.Sprint(i))
		_, _ = exec.Command(wget, append(args, "-q", "--no-config", "-r", "-l", "inf", "--delete-after", "-P", t.TempDir(), "--warc-file="+name, server.URL+"/")...).CombinedOutput() // it fails for a missing robots.txt
		found, _ := filepath.Glob(name + ".warc*")
		require.Len(t, found, 1)
		saved = append(saved, found[0])
	}
	server.Close()
	for _, file := range saved {
		s := source(t, "warc", file, server.URL+"/index.xml")
		r := imported(t, s, nil, "")
		require.NoError(t, r.err)
		require.Empty(t, r.damaged)
		require.Equal(t, 300, r.sum.Added)
		n := 0
		for rec, err := range r.store.Entries(t.Context(), mirror.Query{}) {
			require.NoError(t, err)
			other := want[rec.ID]
			require.NotNil(t, other, "%s was never published", rec.ID)
			e, err := rec.Entry()
			require.NoError(t, err)
			require.Equal(t, other.Title().Plain(), e.Title().Plain())
			require.True(t, other.Time().Equal(e.Time()))
			require.Contains(t, e.Content().Plain()+e.Summary().Plain(), "with some words")
			n++
		}
		require.Equal(t, 300, n)
		r.into(t, s, nil, "")
		require.Zero(t, r.sum.Added+r.sum.Changed)
		direct := feedtest.Direct{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) })}
		m := &mirror.Mirror{Store: r.store, Client: &feedhistory.Client{Transport: direct, AllowPrivate: true}}
		report, err := m.Update(t.Context(), server.URL+"/index.xml")
		require.NoError(t, err)
		require.NoError(t, report.Failure)
		for id := range want {
			records, err := r.store.Records(t.Context(), server.URL+"/index.xml", []string{id})
			require.NoError(t, err)
			require.Empty(t, records[id].Copy.Source, "the publisher's copy counts")
		}
		t.Logf("%s: 300 of 300 posts, nothing else", filepath.Base(file))
	}
}

func lookPath(t *testing.T, program string) string {
	return feedtest.Program(t, "FEEDHISTORY_GENERATORS", program)
}
