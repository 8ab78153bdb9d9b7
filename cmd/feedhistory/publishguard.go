package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/publish"
)

// What is looked at before anything is published, since it is there for good then.

// guard returns what refuses an update by which readers would see entries again
// that they have; nil if there is nothing to look at.
func (c *publishCommand) guard(p *publish.Publisher) (func(publish.Updated) error, error) {
	head, err := publishedHead(p.Output, c.name())
	if err != nil || head == nil || c.Force {
		return nil, err
	}
	self, _ := head.Links.Rel(feedhistory.RelSelf)
	moved := self.Href != "" && self.Href != p.URL()
	return func(u publish.Updated) error {
		switch again := u.Changed + min(u.New, u.Missing); {
		case moved && again > 0:
			return fmt.Errorf("--base: the feed is published as %s, and as %s %s would get a new date or id, so that readers see them again; "+
				"nothing is published: give the --base as before, or --force if you mean it", self.Href, p.URL(), count(again, "entry", "entries"))
		case u.Renamed > 0:
			return fmt.Errorf("%s would be published again, under another id and with a new date: their addresses are published already; "+
				"nothing is published: give --entry-id (and --base) as before, or --force if you mean it", count(u.Renamed, "entry", "entries"))
		}
		return nil
	}, nil
}

// siteURL is where the site is that the entries are of.
func (c *publishCommand) siteURL() string {
	if c.Site != "" {
		return c.Site
	}
	if base, err := url.Parse(c.Base); err == nil {
		return (&url.URL{Scheme: base.Scheme, Host: base.Host, Path: "/"}).String()
	}
	return ""
}

// checkLinks refuses entries whose pages the built site does not have.
func (c *publishCommand) checkLinks(w *world, in *input) error {
	if c.SiteDir == "" {
		return nil
	}
	if info, err := os.Stat(c.SiteDir); err != nil || !info.IsDir() {
		return errors.New("--site-dir: there is no such directory: " + c.SiteDir)
	}
	site, err := url.Parse(c.siteURL())
	if err != nil {
		return err
	}
	var dead []string
	checked := 0
	for _, e := range in.entries {
		link, ok := e.Links.Rel(feedhistory.RelAlternate)
		u, err := url.Parse(link.Href)
		if !ok || err == nil && (!strings.EqualFold(u.Host, site.Host) || !strings.HasPrefix(u.Path+"/", strings.TrimSuffix(site.Path, "/")+"/")) {
			continue // it is not of this site
		}
		if checked++; err != nil || !hasPage(os.DirFS(c.SiteDir), strings.TrimPrefix(u.Path, strings.TrimSuffix(site.Path, "/"))) {
			dead = append(dead, link.Href)
		}
	}
	switch {
	case len(dead) > 0:
		p := newPage(w.stderr)
		p.Para("", "", fmt.Sprintf("%d of %s lead nowhere; nothing is published:", len(dead), count(checked, "link", "links")))
		for _, link := range dead {
			p.Line("  " + clean(link))
		}
		return fmt.Errorf("%s: is the site built, and --link as the site has it? An article without a page has to be left out of the source", c.SiteDir)
	case checked == 0 && len(in.entries) > 0:
		return fmt.Errorf("--site-dir: no entry has a link into the site %s; give --site, or --link", site)
	}
	return nil
}

// hasPage reports whether a web server would find a page of a site: a file, a
// directory's index or, as most do, a file without its .html. Names are as they
// are, also where the file system takes upper and lower case for the same.
func hasPage(site fs.FS, name string) bool {
	dir := strings.HasSuffix(name, "/") || name == ""
	name = strings.Trim(path.Clean("/"+name), "/")
	candidates := []string{name, name + ".html", path.Join(name, "index.html"), path.Join(name, "index.htm")}
	if dir {
		candidates = candidates[2:]
	}
	return slices.ContainsFunc(candidates, func(file string) bool {
		info, err := fs.Stat(site, file)
		return err == nil && !info.IsDir() && isNamed(site, file)
	})
}

func isNamed(site fs.FS, file string) bool {
	entries, err := fs.ReadDir(site, path.Dir(file))
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == path.Base(file) })
}

var (
	codeBlocks = regexp.MustCompile(`(?s)<pre\b.*?</pre>|<code\b.*?</code>`)
	templates  = regexp.MustCompile(`\{\{(?:<|&lt;|%|-?\s*[a-z_]+[\s.|}])|\{%-?\s*\w`)
)

// withTemplates counts the entries in which there are tags of a site generator's
// that nobody has replaced: short codes of Hugo's, and Liquid.
func (in *input) withTemplates() (n int, first string) {
	for _, e := range in.entries {
		if templates.MatchString(codeBlocks.ReplaceAllString(e.Content().Body, "")) {
			if n++; first == "" {
				first = e.ID
			}
		}
	}
	return n, first
}
