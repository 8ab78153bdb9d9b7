package readers_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/readers"
)

// A repo is a git repository of a test.
type repo struct {
	t   *testing.T
	dir string
}

func newRepo(t *testing.T) repo {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip(err)
	}
	r := repo{t, filepath.Join(t.TempDir(), "repository")}
	require.NoError(t, os.Mkdir(r.dir, 0o700))
	r.git("", "init", "-q", "-b", "main")
	r.git("", "config", "user.name", "a")
	r.git("", "config", "user.email", "a@a.example")
	return r
}

// git runs git in the repository, and returns its output.
func (r repo) git(stdin string, args ...string) string {
	r.t.Helper()
	cmd := exec.Command("git", append([]string{"-C", r.dir}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+r.dir)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	require.NoError(r.t, err, "%s", out)
	return strings.TrimSpace(string(out))
}

func (r repo) write(name, text string) {
	r.t.Helper()
	file := filepath.Join(r.dir, name)
	require.NoError(r.t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(r.t, os.WriteFile(file, []byte(text), 0o700))
}

// No program or server that a repository names is run or asked for missing objects, whichever key
// of its configuration names it, and in any layout. The versions in the repository are imported,
// and the missing ones named.
func TestGitRunsNothing(t *testing.T) {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		w.WriteHeader(http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	commands := func(run, remote string) string {
		return strings.NewReplacer("RUN", run, "REMOTE", remote).Replace(`
[core]
	repositoryformatversion = 1
	fsmonitor = RUN
	hooksPath = hooks
	sshCommand = RUN
	gitProxy = RUN
	pager = RUN
	editor = RUN
	askPass = RUN
	alternateRefsCommand = RUN
[extensions]
	partialClone = origin
[remote "origin"]
	promisor = true
	uploadpack = RUN;
	REMOTE
[protocol]
	allow = always
[credential]
	helper = "!RUN;"
[log]
	showSignature = true
[gpg]
	program = RUN
[pager]
	log = RUN
	cat-file = RUN
[diff]
	external = RUN
[diff "x"]
	textconv = RUN
	command = RUN
[filter "x"]
	clean = RUN
	smudge = RUN
	process = RUN
	required = true
[maintenance]
	auto = true
`)
	}
	for _, remote := range []string{"url = .", "url = ext::RUN", "url = ssh://a.example/r.git", "url = git://a.example/r.git", "url = " + server.URL + "/r.git", "vcs = x"} {
		for _, layout := range []string{"plain", "include", "file", "bare", "worktree"} {
			if remote != "url = ." && layout != "plain" && testing.Short() {
				continue
			}
			t.Run(remote+" "+layout, func(t *testing.T) {
				r := newRepo(t)
				for n := range 2 {
					r.write("feed.xml", document("http://a.example/feed.xml", n, 1))
					r.git("", "add", "feed.xml")
					r.git("", "commit", "-q", "-m", "x")
				}
				blob := r.git("", "rev-parse", "HEAD~1:feed.xml")
				require.NoError(t, os.Remove(filepath.Join(r.dir, ".git/objects", blob[:2], blob[2:])))
				ran := filepath.Join(t.TempDir(), "ran")
				text := commands("touch "+ran, remote)
				dir := r.dir
				if layout == "worktree" {
					dir = filepath.Join(t.TempDir(), "tree")
					r.git("", "worktree", "add", "-q", dir)
				}
				r.write(".git/info/attributes", "*.xml diff=x filter=x\n")
				for _, hook := range []string{"post-index-change", "reference-transaction", "post-checkout"} {
					r.write(".git/hooks/"+hook, "#!/bin/sh\ntouch "+ran+"\n")
				}
				switch layout {
				case "include":
					r.write(".git/more", text)
					text = "[include]\n\tpath = more\n"
				case "file":
					moved := filepath.Join(t.TempDir(), "moved")
					require.NoError(t, os.Rename(filepath.Join(r.dir, ".git"), moved))
					r.write(".git", "gitdir: "+moved+"\n")
				case "bare":
					dir = filepath.Join(r.dir, ".git")
				}
				config := r.git("", "rev-parse", "--git-path", "config")
				if !filepath.IsAbs(config) {
					config = filepath.Join(r.dir, config)
				}
				require.NoError(t, os.WriteFile(config, []byte(text), 0o600))
				s, err := readers.NewSource("git", []string{dir, "feed.xml", "http://a.example/feed.xml"})
				require.NoError(t, err)
				got := imported(t, s, nil, "")
				require.NoError(t, got.err)
				require.NoFileExists(t, ran)
				require.Zero(t, requests.Load())
				require.Contains(t, got.entries, "Entry 1")
				require.Len(t, got.damaged, 1)
				require.Contains(t, got.damaged[0], "the repository lacks this version")
			})
		}
	}
}

// Branches may be packed, and objects shared or named by SHA-256; without a commit, that is said.
func TestGitLayouts(t *testing.T) {
	r := newRepo(t)
	from := func(args ...string) *result {
		s, err := readers.NewSource("git", args)
		require.NoError(t, err)
		return imported(t, s, nil, "")
	}
	require.ErrorContains(t, from(r.dir, "feed.xml").err, "there is no commit in refs/heads/main")
	r.write("feed.xml", document("http://a.example/feed.xml", 1, 2))
	r.git("", "add", "feed.xml")
	r.git("", "commit", "-q", "-m", "x")
	r.git("", "rm", "-q", "feed.xml")
	r.git("", "commit", "-q", "-m", "gone")
	r.write("feed.xml", document("http://a.example/feed.xml", 2, 2))
	r.git("", "add", "feed.xml")
	r.git("", "commit", "-q", "-m", "again")
	r.git("", "pack-refs", "--all")
	shared := filepath.Join(t.TempDir(), "shared")
	r.git("", "clone", "-q", "--shared", ".", shared)
	r.git("", "checkout", "-q", "--detach")
	for _, dir := range []string{r.dir, shared} {
		got := from(dir, "feed.xml")
		require.NoError(t, got.err)
		require.Empty(t, got.damaged)
		require.Len(t, got.entries, 3)
	}
	long := repo{t, filepath.Join(t.TempDir(), "long")}
	r.git("", "init", "-q", "--object-format=sha256", long.dir)
	long.write("feed.xml", document("http://a.example/feed.xml", 1, 2))
	long.git("", "add", "feed.xml")
	long.git("", "-c", "user.name=a", "-c", "user.email=a@a.example", "commit", "-q", "-m", "x")
	require.Len(t, from(long.dir, "feed.xml").entries, 2)

	require.ErrorContains(t, from(t.TempDir(), "feed.xml").err, "no git repository")
	require.NoError(t, os.Mkdir(filepath.Join(r.dir, ".git/reftable"), 0o700))
	require.ErrorContains(t, from(r.dir, "feed.xml").err, "--ref-format=files")
}
