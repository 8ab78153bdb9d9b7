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
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/publish"
)

// This file has the checks before publishing, which is permanent.

// guard returns a function to refuse updates after which readers would show entries
// again; nil if there is nothing to check.
func (c *publishCommand) guard(p *publish.Publisher) (func(publish.Report) error, error) {
	head, err := publishedHead(p.Output, c.name())
	if err != nil || head == nil {
		return nil, err
	}
	self, _ := head.Links.Rel(feedhistory.RelSelf)
	moved := self.Href != "" && self.Href != p.URL()
	if _, hasArchives := head.Links.Rel(feedhistory.RelPrevArchive); moved && hasArchives {
		c.was = self.Href
	}
	if c.Force {
		return nil, nil
	}
	return func(u publish.Report) error {
		switch again := u.Changed + min(u.New, u.Missing); {
		case moved && again > 0:
			return fmt.Errorf("--base: the feed is published as %s; as %s, %s would get a new date or id, and readers would see them again; "+
				"nothing is published: give the same --base as before, or --force if you mean it", self.Href, p.URL(), terminal.Count(again, "entry", "entries"))
		case u.Renamed > 0:
			return fmt.Errorf("%s would be published again with another id and a new date, although their addresses are already published; "+
				"nothing is published: give the same --entry-id (and --base) as before, or --force if you mean it", terminal.Count(u.Renamed, "entry", "entries"))
		}
		return nil
	}, nil
}

// siteURL returns the address of the website whose pages the entries are.
func (c *publishCommand) siteURL() string {
	if c.Site != "" {
		return c.Site
	}
	if base, err := url.Parse(c.Base); err == nil {
		return (&url.URL{Scheme: base.Scheme, Host: base.Host, Path: "/"}).String()
	}
	return ""
}

// checkLinks refuses entries whose pages are missing in the built site.
func (c *publishCommand) checkLinks(w *command.World, in *input) error {
	if c.SiteDir == "" {
		return nil
	}
	if info, err := os.Stat(c.SiteDir); err != nil || !info.IsDir() {
		return errors.New("--site-dir: " + c.SiteDir + ": there is no such directory")
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
			continue // the page is on another site
		}
		if checked++; err != nil || !hasPage(os.DirFS(c.SiteDir), strings.TrimPrefix(u.Path, strings.TrimSuffix(site.Path, "/"))) {
			dead = append(dead, link.Href)
		}
	}
	switch {
	case len(dead) > 0:
		p := terminal.NewPage(w.Stderr)
		p.Para("", "", fmt.Sprintf("%d of %s point to missing pages; nothing is published:", len(dead), terminal.Count(checked, "link", "links")))
		for _, link := range dead[:min(len(dead), mostDead)] {
			p.Line("  " + terminal.Clean(link))
		}
		if more := len(dead) - mostDead; more > 0 {
			p.Line(fmt.Sprintf("  and %d more", more))
		}
		if c.Link == "" {
			return fmt.Errorf("%s: is the site built? Leave entries without a page out of the source", c.SiteDir)
		}
		return fmt.Errorf("%s: is the site built, and does --link match its addresses? Leave articles without a page out of the source", c.SiteDir)
	case checked == 0 && len(in.entries) > 0:
		return fmt.Errorf("--site-dir: no entry has a link into the site %s; give --site, or --link", site)
	}
	return nil
}

// mostDead is the maximum number of links to missing pages in a message.
const mostDead = 10

// hasPage reports whether a web server would find a page of a site: a file, the index of a
// directory or, as on most servers, a file whose extension .html the name leaves out. It
// distinguishes upper and lower case, even if the file system does not.
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

// withTemplates counts the entries with tags a site generator should have replaced:
// Hugo's shortcodes, and Liquid. It also returns the id of the first such entry.
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
