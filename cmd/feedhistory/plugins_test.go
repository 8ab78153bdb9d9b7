package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// A plugin publishes a chain without faults, to which posts can be added and in which one
// can be edited.
func TestPlugins(t *testing.T) {
	feedtest.Long(t)
	t.Parallel()
	for _, test := range []struct {
		generator, plugin string // plugin is its folder, and where it is copied to
		posts, feed       string
		build             []string
		name, edited      string            // how posts are named, and the field of their edits
		files             map[string]string // of the site
	}{
		{"jekyll", "jekyll:", "_posts", "_site/feed.atom", []string{"jekyll", "build", "-q"}, "2024-01-%02[1]d-post.md", "updated",
			map[string]string{"_config.yml": "title: A & B\nurl: https://example.org\nfeedhistory: {size: 3}\n"}},
		{"hugo", "hugo:", "content/posts", "public/feed.atom", []string{"hugo", "--quiet"}, "post-%d.md", "lastmod", nil},
		{"eleventy", "javascript:feedhistory", "posts", "_site/feed.atom", []string{"npx", "--no-install", "eleventy", "--quiet"}, "post-%d.md", "updated",
			map[string]string{"package.json": `{"type": "module"}`, "posts/posts.json": `{"tags": "posts"}`, "eleventy.config.js": `
import feedhistory from "./feedhistory/eleventy.js";
export default (config) => config.addPlugin(feedhistory, { base: "https://example.org/", title: "A & B", size: 3 });`}},
		{"astro", "javascript:src/feedhistory", "src/pages/posts", "dist/feed.atom", []string{"npx", "--no-install", "astro", "build", "--silent"}, "post-%d.md", "updated",
			map[string]string{"package.json": `{"type": "module"}`, "astro.config.mjs": `export default { site: "https://example.org" };`,
				"src/pages/[...feed].atom.js": `
import archivedFeed from "../feedhistory/astro.js";
const posts = Object.values(import.meta.glob("./posts/*.md", { eager: true }));
export const { getStaticPaths, GET } = archivedFeed(posts, { title: "A & B", size: 3 });`}},
	} {
		t.Run(test.generator, func(t *testing.T) {
			t.Parallel()
			p := pluginRun{t: t, dir: t.TempDir(), bin: filepath.Join(commandDir(t), "feedhistory")}
			if test.build[0] == "npx" {
				feedtest.Required(t, "FEEDHISTORY_RECIPES")
				modules, err := filepath.EvalSymlinks(filepath.Join(published, "recipes", test.generator, "node_modules"))
				require.NoError(t, err)
				modules, err = filepath.Abs(modules)
				require.NoError(t, err)
				require.NoError(t, os.Symlink(modules, filepath.Join(p.dir, "node_modules")))
			} else {
				feedtest.Program(t, "FEEDHISTORY_GENERATORS", test.generator)
			}
			p.copy(test.plugin)
			for name, text := range test.files {
				p.write(name, text)
			}
			if test.generator == "hugo" { // its older versions read config.toml only
				text := string(feedtest.ReadFile(t, filepath.Join(p.dir, "hugo.toml")))
				require.NoError(t, os.Remove(filepath.Join(p.dir, "hugo.toml")))
				p.write("config.toml", "baseURL = \"https://example.org/\"\ntitle = \"A & B\"\n"+text+"\n")
				p.run("sed", "-i", "s/^size = 50/size = 3/", "config.toml")
			}
			post := func(n int, more string) {
				p.write(filepath.Join(test.posts, fmt.Sprintf(test.name, n)), fmt.Sprintf("---\ntitle: Post %d <b>\ndate: 2024-01-%02d\n%s---\n\nText *%d* & more.\n", n, n, more, n))
			}
			check := func(documents int, args ...string) string {
				p.run(test.build...)
				p.check(documents, append(args, "--base", "https://example.org/", test.feed)...)
				return string(feedtest.ReadFile(t, filepath.Join(p.dir, test.feed)))
			}
			for n := range 7 {
				post(n+1, "")
			}
			require.Contains(t, check(3, "--save", "saved.json"), "Text &lt;em&gt;7&lt;/em&gt; &amp;")
			for n := range 3 {
				post(n+8, "")
			}
			require.NotContains(t, check(4, "--against", "saved.json"), "Post 2 ")
			post(2, test.edited+": 2024-02-01\n")
			require.Contains(t, check(4), "Post 2 ", "an edited post is published again")
		})
	}
}

// A pluginRun is a site with a plugin.
type pluginRun struct {
	t        *testing.T
	dir, bin string
}

func (p *pluginRun) run(args ...string) string {
	cmd := exec.CommandContext(p.t.Context(), args[0], args[1:]...)
	cmd.Dir, cmd.Env = p.dir, append(os.Environ(), "ASTRO_TELEMETRY_DISABLED=1")
	out, err := cmd.CombinedOutput()
	require.NoError(p.t, err, "%q: %s", args, out)
	return string(out)
}

func (p *pluginRun) write(name, text string) {
	require.NoError(p.t, os.MkdirAll(filepath.Dir(filepath.Join(p.dir, name)), 0o700))
	require.NoError(p.t, os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600))
}

// copy copies a plugin, given as folder:target.
func (p *pluginRun) copy(plugin string) {
	folder, target, _ := strings.Cut(plugin, ":")
	source, err := filepath.Abs(filepath.Join(published, "plugins", folder))
	require.NoError(p.t, err)
	target = filepath.Join(p.dir, target)
	require.NoError(p.t, os.MkdirAll(target, 0o700))
	p.run("cp", "-r", source+"/.", target)
}

// check checks the chain of a feed, in which nothing is to be found.
func (p *pluginRun) check(documents int, args ...string) {
	out := p.run(append([]string{p.bin, "check", "--chain"}, args...)...)
	require.Equal(p.t, fmt.Sprintf("%d documents checked: nothing to report\n", documents), out)
}

// WordPress publishes a chain without faults, in which a deleted post moves no other.
func TestWordPress(t *testing.T) {
	feedtest.Long(t)
	t.Parallel()
	for _, program := range []string{"php", "mariadbd"} {
		feedtest.Program(t, "FEEDHISTORY_WORDPRESS", program)
	}
	p := pluginRun{t: t, dir: t.TempDir(), bin: filepath.Join(commandDir(t), "feedhistory")}
	address, socket := freeAddress(), filepath.Join(p.dir, "socket")
	require.NoError(t, os.Mkdir(filepath.Join(p.dir, "database"), 0o700))
	p.start("mariadbd", "--no-defaults", "--user=root", "--datadir="+filepath.Join(p.dir, "database"), "--socket="+socket, "--skip-networking", "--skip-grant-tables")
	p.run("cp", "-rL", "/usr/share/wordpress", "site")
	p.copy("wordpress:site/wp-content/plugins")
	p.write("site/wp-content/mu-plugins/size.php", "<?php add_filter( 'feedhistory_size', fn() => 3 );")
	p.write("site/wp-config.php", fmt.Sprintf(`<?php
define( 'DB_NAME', 'wordpress' ); define( 'DB_USER', 'root' ); define( 'DB_PASSWORD', '' ); define( 'DB_HOST', 'localhost:%s' );
define( 'WP_HOME', 'http://%s' ); define( 'WP_SITEURL', WP_HOME ); define( 'WP_HTTP_BLOCK_EXTERNAL', true ); define( 'DISABLE_WP_CRON', true );
$table_prefix = 'wp_';
defined( 'ABSPATH' ) || define( 'ABSPATH', __DIR__ . '/' );
require_once ABSPATH . 'wp-settings.php';`, socket, address))
	p.run("mariadb-admin", "--no-defaults", "--wait=60", "--socket="+socket, "create", "wordpress")
	php := func(code string) {
		p.write("run.php", "<?php $_SERVER['HTTP_HOST'] = 'localhost'; function wp_mail() { return true; }\n"+code)
		p.run("php", "-d", "display_errors=1", "run.php")
	}
	const load = "require 'site/wp-load.php'; "
	post := func(n int) string {
		return fmt.Sprintf("wp_insert_post( array( 'post_title' => 'Post %d', 'post_content' => 'Text <em>%[1]d</em>', 'post_status' => 'publish', "+
			"'post_author' => 1, 'post_date' => '2024-01-%02[1]d 00:00:00', 'post_date_gmt' => '2024-01-%02[1]d 00:00:00', 'import_id' => %d ) );\n", n, 100+n)
	}
	posts := load
	for n := range 5 {
		posts += post(n + 1)
	}
	php("define( 'WP_INSTALLING', true ); " + load + "require ABSPATH . 'wp-admin/includes/upgrade.php'; " +
		"wp_install( 'A & B', 'ann', 'ann@example.org', true, '', 'secret' ); wp_delete_post( 1, true );")
	php(posts)
	php(load + "require ABSPATH . 'wp-admin/includes/plugin.php'; is_null( activate_plugin( 'feedhistory.php' ) ) || exit( 1 );")
	p.start("php", "-S", address, "-t", "site")
	feed := "http://" + address + "/?feed=history"
	p.run("curl", "-fsS", "--retry", "20", "--retry-connrefused", "-o", "first.atom", feed)
	php(load + post(6) + post(7))
	p.check(3, "--allow-private", "--save", "saved.json", feed)
	php(load + post(8) + post(9) + post(10))
	p.check(4, "--allow-private", "--against", "saved.json", feed)
	shown := func() string { return p.run("curl", "-fsS", feed) }
	require.NotContains(t, shown(), "Post 2<")
	php(load + "wp_update_post( array( 'ID' => 102, 'post_content' => 'Edited' ) ); wp_delete_post( 105, true );")
	p.check(4, "--allow-private", "--save", "saved.json", feed)
	require.Contains(t, shown(), "Post 2<", "an edited post is published again")
	php(load + post(11) + post(12) + post(13))
	p.check(5, "--allow-private", "--against", "saved.json", feed)
}

// start starts a server for the time of the test.
func (p *pluginRun) start(args ...string) {
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = p.dir
	require.NoError(p.t, cmd.Start())
	p.t.Cleanup(func() {
		cancel()
		_ = cmd.Wait() // it was killed
	})
}
