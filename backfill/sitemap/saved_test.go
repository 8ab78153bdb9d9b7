package sitemap

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
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
	"github.com/feedhistory/feedhistory/backfill"
	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// A savedSite is a real site whose pages are in a public repository, as the generator made
// them.
type savedSite struct {
	repository string // at GitHub
	base       string // the site's address, as its feed has it
	folder     string // of the site in the repository
	feed       string
	posts      string // matches the paths of posts; "" if the feed has them all
	shown      int    // the number of entries the feed is cut to
}

// savedSites are sites as their generators made them, found by the names of files only.
var savedSites = []savedSite{
	{"00sapo/00sapo.github.io", "https://federicosimonetta.eu.org/", "build/", "blog/index.xml", `^blog/[^/]+/$`, 3},
	{"0xbekoo/0xbekoo.github.io", "http://localhost:1313/", "", "blogs/index.xml", `^blogs/[^/]+/$`, 5},
	{"0l1k2/lkintro.github.io", "https://localhost:1313/", "", "posts/index.xml", `^posts/[^/]+/$`, 5},
	{"0pankajkumar/blog", "https://805bluebell.github.io/blog/", "docs/", "index.xml", `^(post|blog)/[^/]+/$`, 5},
	{"1024th/blog", "https://1024th.github.io/", "docs/", "index.xml", `^[0-9]{4}/[0-9]{2}/[^/]+/$`, 5},
	{"0xddaa/0xddaa.github.io", "https://ddaa.tw/", "", "feeds/all.atom.xml", "", 10},
	{"0xm4v3rick/0xm4v3rick.github.io", "https://securitytaters.info/", "", "feeds/all.atom.xml", "", 5},
	{"EmadMokhtar/EmadMokhtar.github.io", "http://www.emadmokhtar.com/", "", "feeds/all.atom.xml", "", 10},
	{"Eskimon/eskimon.github.io", "https://eskimon.fr/", "", "feeds/all.atom.xml", "", 10},
	{"LinuxJedi/linuxjedi.github.io", "http://linuxjedi.co.uk/", "", "feeds/all.atom.xml", `^posts/[0-9]{4}/.*/$`, 10},
	{"FrankRx41/dongweiming.github.io", "http://dongweiming.github.io/", "", "feeds/all.atom.xml", `^python-[^/]+\.html$`, 5},
	{"Ngnghm/ngnghm.github.io", "http://ngnghm.github.io/", "", "feeds/all.rss.xml", `^blog/[0-9]{4}/.*/$`, 5},
	{"MovimientoLibre/movimientolibre.github.io", "https://movimientolibre.com/", "", "feeds/all.rss.xml", `^(apuntes|articulos|presentaciones)/[^/]+/$`, 10},
	{"0x43434343/bruce30262.github.io", "http://0.0.0.0:4000/", "_site/", "feed.xml", `^([A-Za-z0-9]+-[^/]+|[0-9]{6,7})/$`, 10},
	{"0xb120/0xbro.red", "http://localhost:4000/", "_site/", "feed.xml", `^posts/[^/]+/$`, 5},
	{"0xRick/0xRick.github.io", "https://0xrick.github.io/", "", "feed.xml", `^(hack-the-box|win-internals|pwn|misc|linux|web|binary-exploitation|ctfs|wizard-labs|lists)/[^/]+/$`, 10},
	{"iplaypi/iplaypi.github.io", "https://www.playpi.org/", "", "atom.xml", `^[0-9]{10}\.html$`, 20},
	{"irimsky/irimsky.github.io", "https://www.irimsky.top/", "", "atom.xml", `^[0-9]{4}/[0-9]{2}/[0-9]{2}/[^/]+/$`, 10},
	{"irmiller22/irmiller22.github.io", "http://blog.ianmiller.nyc/", "", "atom.xml", `^[0-9]{4}/[0-9]{2}/[0-9]{2}/[^/]+/?$`, 10},
	{"irusist/irusist.github.io", "http://irusist.github.io/", "", "atom.xml", `^[0-9]{4}/[0-9]{2}/[0-9]{2}/[^/]+/$`, 10},
	{"isFibonacci/IsFibonacci.github.io", "http://yoursite.com/", "", "atom.xml", `^[0-9]{4}/[0-9]{2}/[0-9]{2}/[^/]+/$`, 10},
	{"isKage/iskage.github.io", "https://blog.iskage.online/", "", "atom.xml", `^posts/[^/]+\.html$`, 10},
	{"Altynai/Altynai.github.io", "http://Altynai.me/", "", "feeds/all.rss.xml", "", 10},
	{"Marco-Santoni/Marco-Santoni.github.io", "https://www.marcosantoni.com/", "", "feeds/all.atom.xml", "", 10},
	{"AlekseyLobanov/AlekseyLobanov.github.io", "https://likemath.ru/", "", "feeds/all.rss.xml", `^posts/[^/]+/$`, 5},
	{"irhawks/irhawks.github.io", "https://irhawks.github.io/", "", "atom.xml", `^[0-9]{4}/.*/$`, 10},
	{"0xAsh/0xAsh.github.io", "http://localhost:4000/", "_site/", "feed.xml", `^[A-Z][A-Za-z0-9.-]+/$`, 5},
	{"0xPb7/0xPb7.github.io", "http://localhost:4000/", "_site/", "feed.xml", "", 3},
	{"09zwcbupt/09zwcbupt.github.io", "http://richardzhao.me/", "_site/", "feed.xml", `[0-9]{4}/[0-9]{2}/[0-9]{2}/`, 5},
	{"000panther/000panther.github.io", "https://jp-weber.family/", "", "index.xml", `^posts/[^/]+/[^/]+/$`, 5},
	{"1breath/1breath.github.io", "http://localhost:1313/", "docs/", "index.xml", "", 3},
}

// Of real sites no page but a post becomes an entry, and most posts do. FEEDHISTORY_SITES
// names a folder with a clone of each repository, OWNER+NAME.
func TestSavedSites(t *testing.T) {
	folder := os.Getenv("FEEDHISTORY_SITES")
	if folder == "" {
		t.Skip("FEEDHISTORY_SITES names no folder with clones")
	}
	var posts, found, named int
	for _, s := range savedSites {
		t.Run(s.repository, func(t *testing.T) {
			files := s.read(t, folder)
			whole, err := feedhistory.Parse(bytes.NewReader(files[s.feed]), s.base+s.feed)
			require.NoError(t, err)
			ids := map[string]string{} // by the keys of links
			for _, e := range whole.Entries {
				ids[key(linkOf(e))] = e.ID
			}
			files[s.feed] = cut(files[s.feed], s.shown)
			b := backfill.Backfill{HTTP: &feedhistory.Client{AllowPrivate: true, Transport: feedtest.Direct{Handler: s.serve(files)}, Tries: 1, Budget: feedhistory.Budget{Documents: 2000}}, Methods: []backfill.Method{Site{Pace: 1}}}
			r, err := b.Fetch(context.Background(), s.base+s.feed, backfill.Probe{})
			require.NoError(t, err)
			base, err := url.Parse(s.base)
			require.NoError(t, err)
			post := regexp.MustCompile(s.posts)
			all := map[string]bool{}
			for name := range files {
				at := strings.TrimSuffix(name, "index.html")
				for _, at := range []string{at, strings.TrimSuffix(at, ".html")} {
					if ids[key(s.base+at)] != "" || s.posts != "" && post.MatchString(at) && strings.HasSuffix(name, ".html") {
						all[key(s.base+at)] = true
					}
				}
			}
			for _, e := range r.History.Entries {
				at := linkOf(e)
				u, err := url.Parse(at)
				require.NoError(t, err)
				id, mentioned := ids[key(at)]
				if e.KeptBy == "" {
					delete(all, key(at))
					continue
				}
				require.True(t, mentioned || s.posts != "" && post.MatchString(strings.TrimPrefix(u.Path, base.Path)), "no post: %s", at)
				found++
				if !mentioned || id == e.ID {
					named++
				} else {
					t.Logf("the feed's ID of %s is %s", e.ID, id)
				}
			}
			posts += len(all)
		})
	}
	t.Logf("%d posts that the feeds do not show, %d found, %d with the feed's ID as far as it is known", posts, found, named)
	require.Greater(t, found*5, posts*4)
}

// read returns the files of the site, by their names.
func (s savedSite) read(t *testing.T, folder string) map[string][]byte {
	repository := filepath.Join(folder, strings.ReplaceAll(s.repository, "/", "+"), "repo")
	if _, err := os.Stat(filepath.Join(repository, ".git")); err == nil {
		repository = filepath.Join(repository, ".git")
	}
	list, err := exec.Command("git", "-C", repository, "ls-tree", "-r", "-z", "HEAD").Output()
	require.NoError(t, err)
	var ask bytes.Buffer
	var names []string
	for line := range strings.SplitSeq(string(list), "\x00") {
		head, name, _ := strings.Cut(line, "\t")
		if name, ok := strings.CutPrefix(name, s.folder); ok && head != "" && path.Ext(name) != "" && strings.Contains(".html.xml.txt.gz", path.Ext(name)) {
			names = append(names, name)
			ask.WriteString(strings.Fields(head)[2] + "\n")
		}
	}
	cat := exec.Command("git", "-C", repository, "cat-file", "--batch")
	cat.Stdin = &ask
	out, err := cat.Output()
	require.NoError(t, err)
	files := map[string][]byte{}
	r := bufio.NewReader(bytes.NewReader(out))
	for _, name := range names {
		var object, kind string
		var size int
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		if n, _ := fmt.Sscan(line, &object, &kind, &size); n < 3 {
			continue // a large file that the clone lacks
		}
		body := make([]byte, size+1)
		_, err = io.ReadFull(r, body)
		require.NoError(t, err)
		files[name] = body[:size]
	}
	return files
}

// cut returns a feed with the first n of its entries.
func cut(feed []byte, n int) []byte {
	entry := regexp.MustCompile(`(?s)<(item|entry)[ >].*?</(item|entry)>`)
	return entry.ReplaceAllFunc(feed, func(e []byte) []byte {
		if n--; n < 0 {
			return nil
		}
		return e
	})
}

// serve returns a handler that serves the files as GitHub's pages do.
func (s savedSite) serve(files map[string][]byte) http.Handler {
	base, _ := url.Parse(s.base)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, ok := strings.CutPrefix(r.URL.Path, base.Path)
		if !ok || hostKey(&url.URL{Host: r.Host}) != hostKey(base) {
			http.NotFound(w, r)
			return
		}
		index := path.Join(name, "index.html")
		if files[index] != nil && name != "" && !strings.HasSuffix(name, "/") {
			http.Redirect(w, r, r.URL.EscapedPath()+"/", http.StatusMovedPermanently)
			return
		}
		for _, at := range []string{name, name + ".html", index} {
			if files[at] != nil {
				w.Header().Set("Content-Type", mime.TypeByExtension(path.Ext(at)))
				_, _ = w.Write(files[at])
				return
			}
		}
		http.NotFound(w, r)
	})
}
