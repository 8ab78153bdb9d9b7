package backfill

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// A platformSite is a model of a server that a fixture describes.
type platformSite struct {
	*site
	server     map[string]string // the fixture's settings
	feed, item string

	list, listed string // the form of the software's own list; "" if there is none
}

func readPlatform(t testing.TB, file string) *platformSite {
	text := feedtest.ReadFile(t, file)
	a := feedtest.Parse(string(text))
	p := &platformSite{server: map[string]string{}}
	settings, ok := a.File("server")
	require.True(t, ok)
	for line := range strings.Lines(settings) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		p.server[name] = value
	}
	p.feed, _ = a.File("feed")
	p.item, _ = a.File("item")
	p.list, _ = a.File("list")
	p.listed, _ = a.File("listed")
	p.site = newSite(p.number("posts"))
	return p
}

func (p *platformSite) number(name string) int { return atoi(p.server[name]) }

func (p *platformSite) answer(w http.ResponseWriter, r *http.Request) {
	posts, size := p.sorted(published), p.number("size")
	uri := r.URL.RequestURI()
	if unescaped, err := http.NewRequest("GET", strings.ReplaceAll(uri, "%2F", "/"), nil); err == nil {
		uri = unescaped.URL.RequestURI()
	}
	from, form, item, between := 0, p.feed, p.item, ""
	if value, ok := match(p.server["count"], uri); ok {
		from, size, form, item, between = atoi(value), p.number("paged"), p.list, p.listed, ","
	} else if value, ok := match(p.server["before"], uri); ok || p.server["newest"] != "" && uri == p.server["newest"] {
		size, form, item, between = max(size, 2), p.list, p.listed, "," // it shows the feed's last entry, too
		for from = 0; ok && from < len(posts) && posts[from].published.UnixMilli() >= int64(atoi(value)); {
			from++
		}
	} else if value, ok := match(p.server["page"], uri); ok {
		size = max(size, p.number("paged"))
		from = (atoi(value) - p.number("first")) * size
	} else if value, ok := match(p.server["limit"], uri); ok {
		size = min(atoi(value), p.number("most"))
	} else if value, ok := match(p.server["after"], uri); ok {
		for i, post := range posts {
			if fill(p.server["cursor"], "{id}", post.id) == value {
				from = i + 1
			}
		}
	} else if uri != p.server["path"] {
		http.NotFound(w, r)
		return
	}
	page := window(posts, from, size)
	if len(page) == 0 && p.server["end"] == "404" {
		http.NotFound(w, r)
		return
	}
	var items strings.Builder
	for i, post := range page {
		if i > 0 {
			items.WriteString(between)
		}
		items.WriteString(p.write(item, post))
	}
	w.Header().Set("Content-Type", "application/xml")
	_, _ = w.Write([]byte(strings.ReplaceAll(p.write(form, posts[0]), "{items}", items.String())))
}

func (p *platformSite) write(template string, of post) string {
	return strings.NewReplacer("{site}", p.url, "{id}", strconv.Itoa(of.id), "{title}", of.text,
		"{date}", of.published.Format(time.RFC1123Z), "{time}", of.published.Format(time.RFC3339), "{ms}", strconv.FormatInt(of.published.UnixMilli(), 10)).Replace(template)
}

func fill(template, name string, n int) string {
	return strings.ReplaceAll(template, name, strconv.Itoa(n))
}

// match returns the part of a URI that is in place of the braces in a template.
func match(template, uri string) (string, bool) {
	if template == "" {
		return "", false
	}
	expr := regexp.MustCompile(`\\\{[a-z]+\\\}`).ReplaceAllString(regexp.QuoteMeta(template), "(.+)")
	m := regexp.MustCompile("^" + expr + "$").FindStringSubmatch(uri)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// complete checks that a history has each of the site's posts once.
func (p *platformSite) complete(t require.TestingT, r *Recovery) {
	var items strings.Builder
	posts := p.sorted(published)
	for _, post := range posts {
		items.WriteString(p.write(p.item, post))
	}
	text := strings.ReplaceAll(p.write(p.feed, posts[0]), "{items}", items.String())
	all, err := feedhistory.Parse(strings.NewReader(text), p.url)
	require.NoError(t, err)
	want, got := list(all.Entries), list(r.History.Entries)
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, want, got, "%s", strings.Join(p.requests, "\n"))
	require.Empty(t, r.History.Gaps)
}

func platformFiles(t testing.TB) []string {
	files := feedtest.Glob(t, "testdata/platforms/*.txtar")
	pages := slices.DeleteFunc(slices.Clone(platforms), func(p platform) bool { return p.Page == "" })
	require.Len(t, files, len(pages), "a fixture for each line with pages")
	return files
}

// platformMethods returns the methods for one software each. One for any software asks after
// they have ended, when a post may appear that is no longer theirs.
func platformMethods() []Method {
	return slices.DeleteFunc(Methods(), func(m Method) bool { return m == ActivityPub{} })
}

func TestPlatforms(t *testing.T) {
	for _, file := range platformFiles(t) {
		name := strings.TrimSuffix(filepath.Base(file), ".txtar")
		t.Run(name, func(t *testing.T) {
			p := readPlatform(t, file)
			p.serve(t, p.answer)
			r := p.recover(t, p.server["path"], platformMethods()...)
			p.complete(t, r)
			require.Equal(t, name, r.RecoveredBy)
			require.Equal(t, feedhistory.VerdictLossy, r.Verdict())
			pages := (len(p.posts) + p.number("size") - 1) / p.number("size")
			require.LessOrEqual(t, len(p.requests), allowed(pages))

			// A post that is published at any moment is neither lost nor comes
			// twice.
			most := len(p.requests)
			for _, moment := range []int{2, 3, most / 2, most - 1, most} {
				p := readPlatform(t, file)
				p.before = func(n int) {
					if n == moment {
						p.publish()
					}
				}
				r := p.fetch(t, p.answer, p.server["path"], platformMethods()...)
				p.complete(t, r)
				require.LessOrEqual(t, len(p.requests), allowed(pages+1))
			}
		})
	}
}

// The history is complete for any number of posts, on pages of any size, while
// others are published.
func TestPlatformsAnySize(t *testing.T) {
	files := platformFiles(t)
	rapid.Check(t, func(rt *rapid.T) {
		p := readPlatform(t, rapid.SampledFrom(files).Draw(rt, "platformSite"))
		size := rapid.IntRange(1, 9).Draw(rt, "size")
		n := rapid.IntRange(1, 60).Draw(rt, "posts")
		p.server["size"] = strconv.Itoa(size)
		p.site = newSite(n)
		left := rapid.IntRange(0, size-1).Draw(rt, "published") // at most a page at once
		p.before = func(at int) {
			if at > 2 && left > 0 && rapid.IntRange(0, 3).Draw(rt, "now") == 0 {
				p.publish()
				left--
			}
		}
		r := p.fetch(rt, p.answer, p.server["path"], platformMethods()...)
		if r.RecoveredBy == "" {
			require.LessOrEqual(rt, n, size)
			return
		}
		p.complete(rt, r)
	})
}

// In a list by offset, new posts may move the last page along with the offset: it comes
// again, and that is no loop. A list whose offset has a bound is one.
func TestPlatformsMovedAlong(t *testing.T) {
	substack := func(posts int) *platformSite {
		p := readPlatform(t, "testdata/platforms/substack.txtar")
		p.server["size"] = "4"
		p.site = newSite(posts)
		return p
	}
	p := substack(5)
	p.before = func(request int) {
		if 2 < request && request <= 5 {
			p.publish()
		}
	}
	r := p.fetch(t, p.answer, p.server["path"])
	p.complete(t, r)
	require.Equal(t, feedhistory.VerdictLossy, r.Verdict())

	p = substack(260)
	bounded := func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		if at := query.Get("offset"); at != "" {
			r.URL.RawQuery = "sort=new&limit=50&offset=" + strconv.Itoa(min(atoi(at), 100))
		}
		p.answer(w, r)
	}
	r = p.fetch(t, bounded, p.server["path"])
	require.Len(t, r.History.Gaps, 1)
	require.Equal(t, feedhistory.ReasonLoop, r.History.Gaps[0].Reason)
	require.Equal(t, feedhistory.VerdictPartial, r.Verdict())
	require.Len(t, r.History.Entries, 150)
}

// If the software is known, but its server ignores the parameter, that costs
// one request, once.
func TestPlatformsIgnored(t *testing.T) {
	for _, file := range platformFiles(t) {
		p := readPlatform(t, file)
		handler := func(w http.ResponseWriter, r *http.Request) {
			r.URL.Path, r.URL.RawQuery, _ = strings.Cut(p.server["path"], "?")
			r.URL.RawPath = ""
			p.answer(w, r)
		}
		r := p.fetch(t, handler, p.server["path"])
		require.Equal(t, feedhistory.VerdictWindow, r.Verdict(), file)
		require.Equal(t, None, r.Probe.Method)
		require.Contains(t, r.Probe.Reason, strings.TrimSuffix(filepath.Base(file), ".txtar"), "it says why")
		require.LessOrEqual(t, len(p.requests), 3, "%s: %s", file, p.requests)
	}
}

// A list has no more than a feed's own copies: those count.
func TestPlatformsLists(t *testing.T) {
	p := readPlatform(t, "testdata/platforms/substack.txtar")
	p.serve(t, p.answer)
	r := p.recover(t, p.server["path"])
	kept := 0
	for _, e := range r.History.Entries {
		if e.KeptBy == "substack" {
			kept++
			require.Equal(t, "On "+e.Title().Body, e.Summary().Body)
		} else {
			require.Equal(t, "<p>The whole "+e.Title().Body+"</p>", e.Content().Body)
		}
	}
	require.Equal(t, 310, kept, "of 330; the feed has the others")

	// A list by other names proves nothing, and is not merged.
	p = readPlatform(t, "testdata/platforms/substack.txtar")
	p.listed = strings.ReplaceAll(p.listed, "/p/light", "/p/other")
	p.serve(t, p.answer)
	r = p.recover(t, p.server["path"])
	require.Equal(t, None, r.Probe.Method)
	require.Len(t, r.History.Entries, 20)

	// Medium has nothing, and it is said.
	p.feed = strings.ReplaceAll(p.feed, "Substack", "Medium")
	p.requests = nil
	r = p.recover(t, p.server["path"])
	require.Contains(t, r.Probe.Reason, "the latest ten posts are all")
	require.Len(t, p.requests, 1)
}

// If a method that seems to suit a feed does not work, the reason is reported
// and stored.
func TestPlatformsReason(t *testing.T) {
	for file, want := range map[string]string{
		"ghost":     "before version 3.0 (2019)",
		"discourse": "latest.rss",
		"drupal":    "full pager",
		"podlove":   "another page brings nothing else",
	} {
		p := readPlatform(t, filepath.Join("testdata", "platforms", file+".txtar"))
		handler := func(w http.ResponseWriter, r *http.Request) { // newer versions, or other feeds, answer like this
			if r.URL.RequestURI() != p.server["path"] && file == "ghost" {
				http.NotFound(w, r)
				return
			}
			r.URL.RawQuery = ""
			p.answer(w, r)
		}
		r := p.fetch(t, handler, p.server["path"])
		require.Equal(t, None, r.Probe.Method)
		require.Contains(t, r.Probe.Reason, want)
		data, err := json.Marshal(r.Probe)
		require.NoError(t, err)
		var again Probe
		require.NoError(t, json.Unmarshal(data, &again))
		require.Equal(t, r.Probe, again)
	}
}
