package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// A plugin publishes a chain without faults, to which posts can be added and in which one
// can be edited.
func TestPlugins(t *testing.T) {
	feedtest.Long(t)
	bin := filepath.Join(commandDir(t), "feedhistory")
	for _, test := range []struct {
		generator, posts, feed string
		build                  []string
		config, name, edited   string // the configuration, how posts are named, and the field of their edits
	}{
		{"jekyll", "_posts", "_site/feed.atom", []string{"build", "-q"},
			"title: A & B\nurl: https://example.org\nfeedhistory: {size: 3}\n", "2024-01-%02[1]d-post.md", "updated"},
		{"hugo", "content/posts", "public/feed.atom", []string{"--quiet"}, "", "post-%d.md", "lastmod"},
	} {
		t.Run(test.generator, func(t *testing.T) {
			if _, err := exec.LookPath(test.generator); err != nil {
				t.Skip(test.generator + " is not installed")
			}
			dir := t.TempDir()
			run := func(name string, args ...string) string {
				cmd := exec.CommandContext(t.Context(), name, args...)
				cmd.Dir = dir
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, "%s %q: %s", name, args, out)
				return string(out)
			}
			write := func(name, text string) {
				require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700))
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
			}
			post := func(n int, more string) {
				write(filepath.Join(test.posts, fmt.Sprintf(test.name, n)), fmt.Sprintf("---\ntitle: Post %d <b>\ndate: 2024-01-%02d\n%s---\n\nText *%d* & more.\n", n, n, more, n))
			}
			source, err := filepath.Abs(filepath.Join(published, "plugins", test.generator))
			require.NoError(t, err)
			run("cp", "-r", source+"/.", dir)
			if test.generator == "hugo" { // its older versions read config.toml only
				text := string(feedtest.ReadFile(t, source+"/hugo.toml"))
				require.NoError(t, os.Remove(filepath.Join(dir, "hugo.toml")))
				write("config.toml", "baseURL = \"https://example.org/\"\ntitle = \"A & B\"\n"+text+"\n")
				run("sed", "-i", "s/^size = 50/size = 3/", "config.toml")
			} else {
				write("_config.yml", test.config)
			}
			check := func(args ...string) string {
				run(test.generator, test.build...)
				return run(bin, append(append([]string{"check", "--chain", "--base", "https://example.org/"}, args...), test.feed)...)
			}
			for n := range 7 {
				post(n+1, "")
			}
			require.Equal(t, "3 documents checked: nothing to report\n", check("--save", "saved.json"))
			for n := range 3 {
				post(n+8, "")
			}
			require.Equal(t, "4 documents checked: nothing to report\n", check("--against", "saved.json"))
			post(2, test.edited+": 2024-02-01\n")
			out := check()
			require.Equal(t, "4 documents checked: nothing to report\n", out)
			require.Contains(t, string(feedtest.ReadFile(t, filepath.Join(dir, test.feed))), "Post 2 ", "an edited post is published again")
		})
	}
}
