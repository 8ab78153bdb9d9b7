package markdown

import (
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/show"
)

func TestSplitFrontMatter(t *testing.T) {
	for text, want := range map[string]string{
		"---\ntitle: a\n---\nbody\n":             "a|body\n",
		"\ufeff--- \r\ntitle: a\r\n---\r\nbody":  "a|body",
		"+++\ntitle = \"a\"\n+++\n":              "a|",
		"---\n---\nbody":                         "|body",
		"---\ntitle: 7\n---":                     "7|",
		"---\ntitle: a\nx: '----'\n----\n---\nb": "error",
		"---\ntitle: a\n":                        "error",
		"---\n- a\n---\n":                        "error",
		"+++\ntitle: a\n+++\n":                   "error",
		"no front matter\n---\n":                 "none|no front matter\n---\n",
		"":                                       "none|",
	} {
		front, body, err := splitFrontMatter([]byte(text))
		got := front.text("title") + "|" + string(body)
		switch {
		case err != nil:
			got = "error"
		case front == nil:
			got = "none" + got
		}
		if got != want {
			t.Errorf("%q: %q, want %q (%v)", text, got, want, err)
		}
	}
}

func TestFrontMatterTimes(t *testing.T) {
	for matter, want := range map[string]string{
		"---\nd: 2003-12-13\n---":                       "2003-12-13T00:00:00Z",
		"---\nd: 2003-12-13T18:30:02+01:00\n---":        "2003-12-13T18:30:02+01:00",
		"---\nd: 2003-12-13 18:30:02 +0100\n---":        "2003-12-13T18:30:02+01:00",
		"---\nd: 2003-12-13 18:30\n---":                 "2003-12-13T18:30:00Z",
		"---\nd: '2003-12-13'\n---":                     "2003-12-13T00:00:00Z",
		"---\nd: yesterday\n---":                        "error",
		"---\nd:\n---":                                  "",
		"+++\nd = 2003-12-13\n+++":                      "2003-12-13T00:00:00Z",
		"+++\nd = 2003-12-13T18:30:02\n+++":             "2003-12-13T18:30:02Z",
		"+++\nd = 2003-12-13T18:30:02.5-07:00\n+++":     "2003-12-13T18:30:02.5-07:00",
		"+++\nd = \"2003-12-13 18:30:02 -0700\"\n+++":   "2003-12-13T18:30:02-07:00",
		"---\nother: 1\nd: 2003-12-13T18:30:02Z\n---\n": "2003-12-13T18:30:02Z",
	} {
		front, _, err := splitFrontMatter([]byte(matter))
		if err != nil {
			t.Fatal(matter, err)
		}
		at, err := front.time(time.UTC, "none", "d")
		got := show.Time(at)
		if err != nil {
			got = "error"
		}
		if got != want {
			t.Errorf("%q: %s, want %s", matter, got, want)
		}
	}
}

func TestFrontMatterLists(t *testing.T) {
	front, _, err := splitFrontMatter([]byte("---\na: one\nb: [two, 3, {name: four}]\nc: {name: five, url: x}\nd:\n---"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(front.list("a", "b", "c", "d", "e"), " "); got != "one two 3 four five" {
		t.Error(got)
	}
}

// The name of a file is part of the address, as with the generators.
func TestPlaces(t *testing.T) {
	files := fstest.MapFS{
		"a b/ü?.md":              {Data: []byte("---\ndate: 2003-02-01\n---\n")},
		"index.md":               {Data: []byte("---\ntitle: Home\ndate: 2003-01-01\n---\n")},
		"x/2003-12-13-y.md":      {Data: []byte("---\nslug: z\n---\n")},
		"x/2003-13-13-y.md":      {Data: []byte("---\ndate: 2003-01-01\n---\n")},
		"bundle/index.md":        {Data: []byte("---\ndate: 2003-01-01\n---\n")},
		".git/config.md":         {Data: []byte("---\n---\n")},
		"own.md":                 {Data: []byte("---\nid: urn:own\nurl: ../own/\n---\n")},
		"relative/canonical.md":  {Data: []byte("---\ncanonical_url: https://example.com/c\n---\n")},
		"not/an/article.txt":     {Data: []byte("---\n---\n")},
		"not/an/_index.markdown": {Data: []byte("---\n---\n")},
	}
	want := map[string]string{
		"https://x/2003/02/a-b/%C3%BC/%C3%BC":           "ü?",
		"https://x/2003/01/index/index":                 "Home",
		"https://x/2003/12/x/z/z":                       "z",
		"https://x/2003/01/x/2003-13-13-y/2003-13-13-y": "2003-13-13-y",
		"https://x/2003/01/bundle/bundle":               "bundle",
		"urn:own https://example.org/own/":              "own",
		"https://example.com/c":                         "canonical",
	}
	site := &Site{Files: files, Zone: time.UTC, Base: "https://example.org/feeds/", Link: "https://x/{year}/{month}/{path}/{slug}",
		Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	records, err := site.Records()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range records {
		key := r.ID
		if link := r.Links[0].Href; link != r.ID {
			key += " " + link
		}
		if title, ok := want[key]; !ok || title != r.Title.Body {
			t.Errorf("%s: %q", key, r.Title.Body)
		}
		delete(want, key)
	}
	if len(want) > 0 {
		t.Error("missing:", want)
	}
	files["undated.md"] = &fstest.MapFile{Data: []byte("---\n---\n")}
	if _, err = site.Records(); err == nil || !strings.HasPrefix(err.Error(), "undated.md: it has no date") {
		t.Error(err)
	}
	site.Link = ""
	if records, err = site.Records(); err != nil || records[0].ID != "https://example.org/feeds/#a%20b/%C3%BC?" {
		t.Error(records[0].ID, err)
	}
}

// The addresses are those that the generators make of names, and of days in the site's
// time zone. TestSiteGenerators compares them with the generators themselves.
func TestNamesInAddresses(t *testing.T) {
	for name, want := range map[string]string{
		"posts/First": "posts/first", "With  two Spaces ": "with-two-spaces", "a - b": "a-b", "a--b": "a--b", "x (y)": "x-y", "c++_c#": "c++_c#", "Ünï & more!": "ünï-more",
	} {
		if got := hugoPath(name); got != want {
			t.Errorf("hugoPath(%q) = %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{
		"First": "First", "With  two Spaces ": "With-two-Spaces", "Ünï & more": "Ünï-&-more", "a/b?c": "a-b-c", "-x-": "x",
	} {
		if got := jekyllSlug(name); got != want {
			t.Errorf("jekyllSlug(%q) = %q, want %q", name, got, want)
		}
	}
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	site := &Site{Zone: zone}
	at := ArticlePlace{Slug: "x", date: time.Date(2003, 12, 15, 3, 30, 0, 0, time.UTC), categories: []string{"News", "Big Stories"}}
	const pattern = "https://x/{categories}/{year}/{month}/{day}/{slug}"
	for _, want := range []string{"https://x/news/big%20stories/2003/12/14/x", "https://x/2003/12/14/x"} {
		if got, err := site.Expand(pattern, at); err != nil || got != want {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
		at.categories = nil
	}
}
