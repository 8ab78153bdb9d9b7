package readers

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A version is a version of a file in a repository.
type version struct {
	commit string
	at     time.Time
}

// readGit takes all committed versions of a file, oldest first, as the git program finds them.
// If the source names no feed, the newest one does.
func readGit(ctx context.Context, s *Source, _ string, yield func(Item) error) (err error) {
	g, err := openGit(ctx, s.Name, s.Path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	versions, err := g.versions()
	if err == nil {
		err = g.start()
	}
	if err != nil {
		return err
	}
	defer g.stop()
	feed := s.feed()
	if feed == "" {
		if feed, err = g.feed(versions); err != nil {
			return err
		}
	}
	for n, v := range versions {
		data, err := g.show(v)
		var found Item
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, errNone): // deleted there
			continue
		case errors.Is(err, errLarge), errors.Is(err, errLost):
			found.Damage = fmt.Errorf("%s: %w", g.name(v), err)
		case err != nil:
			return err
		default:
			if found = documentItem(g.name(v), data, feed, v.at); found.Document != nil {
				found.Document.Older = n
			}
		}
		if err := yield(found); err != nil {
			return err
		}
	}
	return nil
}

// A git runs the git program on the objects of a repository. It runs in a repository of its own,
// made for this, so neither the configuration of the one named nor that of the user has an
// effect: no command named there is run, and no missing object requested.
type git struct {
	ctx     context.Context
	dir     string // as the user names it
	path    string // of the file, from the root of the repository
	objects string // the directory of the objects
	own     string // the repository of our own
	left    int64  // how many bytes the further versions may have

	cat *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// openGit finds the repository of a directory.
func openGit(ctx context.Context, dir, file string) (*git, error) {
	r, err := findRepository(dir)
	if err != nil {
		return nil, err
	}
	g := &git{ctx: ctx, dir: dir, path: path.Join(r.prefix, filepath.ToSlash(file)), objects: filepath.Join(r.common, "objects")}
	head, err := r.head()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	size, err := sizeOf(g.objects)
	if err != nil {
		return nil, err
	}
	g.left = leastVersions + versionsRatio*size
	if g.own, err = os.MkdirTemp("", "feedhistory-git-"); err != nil {
		return nil, err
	}
	config := "[core]\nrepositoryformatversion = 1\nbare = true\n"
	if len(head) > 40 {
		config += "[extensions]\nobjectFormat = sha256\n"
	}
	files := map[string]string{"HEAD": head + "\n", "config": config}
	if shallow, err := readSaved(filepath.Join(r.common, "shallow")); err == nil {
		files["shallow"] = string(shallow)
	}
	err = os.Mkdir(filepath.Join(g.own, "refs"), 0o700)
	for name, text := range files {
		err = cmp.Or(err, os.WriteFile(filepath.Join(g.own, name), []byte(text), 0o600))
	}
	if err != nil {
		return nil, errors.Join(err, g.close())
	}
	return g, nil
}

func (g *git) close() error { return os.RemoveAll(g.own) }

// command returns a command of git reading the objects, and nothing else.
func (g *git) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(g.ctx, "git", append([]string{"--no-pager", "--literal-pathspecs"}, args...)...)
	cmd.Dir, cmd.WaitDelay = g.own, time.Second
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		name := strings.ToUpper(variable)
		return strings.HasPrefix(name, "GIT_") && !strings.HasPrefix(name, "GIT_EXEC_PATH=")
	})
	cmd.Env = append(cmd.Env, "GIT_DIR="+g.own, "GIT_OBJECT_DIRECTORY="+g.objects, "HOME="+g.own, "XDG_CONFIG_HOME="+g.own,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1", "GIT_NO_REPLACE_OBJECTS=1", "GIT_OPTIONAL_LOCKS=0",
		"GIT_ALLOW_PROTOCOL=", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0")
	return cmd
}

// A repository is where a git repository has its parts.
type repository struct {
	git    string // the directory with HEAD
	common string // the directory with the objects and branches, which a worktree shares
	prefix string // where the directory asked for is, below the root of the files
}

// findRepository finds the repository of a directory, which may be below the root of its files.
func findRepository(dir string) (r repository, err error) {
	from, err := filepath.EvalSymlinks(dir)
	if err == nil {
		from, err = filepath.Abs(from)
	}
	if err != nil {
		return r, err
	}
	for at := from; r.git == ""; at = filepath.Dir(at) {
		inside := filepath.Join(at, ".git")
		info, err := os.Stat(inside)
		switch {
		case err == nil && info.IsDir():
			r.git = inside
		case err == nil && info.Mode().IsRegular():
			if r.git, err = namedIn(inside, "gitdir: "); err != nil {
				return r, err
			}
		case isRepository(at):
			r.git, r.common = at, at
			return r, nil
		case at == filepath.Dir(at):
			return r, fmt.Errorf("%s: this is no git repository, nor in one", dir)
		}
		if r.prefix, err = filepath.Rel(at, from); err != nil {
			return r, err
		}
	}
	r.prefix = filepath.ToSlash(r.prefix)
	r.common, err = namedIn(filepath.Join(r.git, "commondir"), "")
	if errors.Is(err, fs.ErrNotExist) {
		r.common, err = r.git, nil
	}
	if err == nil && !isRepository(r.git) && r.git == r.common {
		err = fmt.Errorf("%s: this is no git repository", r.git)
	}
	return r, err
}

func isRepository(dir string) bool {
	_, head := os.Stat(filepath.Join(dir, "HEAD"))
	objects, err := os.Stat(filepath.Join(dir, "objects"))
	return head == nil && err == nil && objects.IsDir()
}

// namedIn returns the directory named in a small file, after a prefix.
func namedIn(file, prefix string) (string, error) {
	text, err := readLine(file)
	if err != nil {
		return "", err
	}
	name, ok := strings.CutPrefix(text, prefix)
	if !ok {
		return "", fmt.Errorf("%s: it names no directory", file)
	}
	if name = filepath.FromSlash(name); filepath.IsAbs(name) {
		return name, nil
	}
	return filepath.Join(filepath.Dir(file), name), nil
}

// readLine returns the only line of a regular file.
func readLine(file string) (string, error) {
	info, err := os.Stat(file)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() || info.Size() > revealing {
		return "", fmt.Errorf("%s: no file of a git repository", file)
	}
	text, err := os.ReadFile(file)
	return strings.TrimSpace(string(text)), err
}

var (
	objectName  = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	errReftable = errors.New("its branches are in a form that is not read here: give a clone, made by git clone --ref-format=files")
)

// mostSymbolic bounds the names leading from one to the next.
const mostSymbolic = 5

// head returns the newest commit.
func (r repository) head() (string, error) {
	if _, err := os.Stat(filepath.Join(r.common, "reftable")); err == nil {
		return "", errReftable
	}
	text, err := readLine(filepath.Join(r.git, "HEAD"))
	for range mostSymbolic {
		name, symbolic := strings.CutPrefix(text, "ref: ")
		switch {
		case err != nil:
			return "", err
		case objectName.MatchString(text):
			return text, nil
		case !symbolic || !fs.ValidPath(name) || !strings.HasPrefix(name, "refs/"):
			return "", errors.New("its HEAD names no commit")
		}
		if text, err = readLine(filepath.Join(r.common, filepath.FromSlash(name))); errors.Is(err, fs.ErrNotExist) {
			text, err = r.packed(name)
		}
	}
	return "", errors.New("its HEAD leads to no commit")
}

// packed returns the commit of a branch in the file for many of them.
func (r repository) packed(name string) (string, error) {
	f, err := os.Open(filepath.Join(r.common, "packed-refs"))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("there is no commit in %s", name)
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if commit, ok := strings.CutSuffix(lines.Text(), " "+name); ok && objectName.MatchString(commit) {
			return commit, nil
		}
	}
	return "", cmp.Or(lines.Err(), fmt.Errorf("there is no commit in %s", name))
}

// The versions of a file, unpacked, may have a gigabyte, and a thousand times the bytes of the
// repository: a version packed as a difference to another one takes little room there.
const (
	leastVersions = 1 << 30
	versionsRatio = 1000
)

// sizeOf returns the size of a directory of objects, with those it shares.
func sizeOf(objects string) (size int64, err error) {
	dirs := []string{objects}
	if shared, err := readSaved(filepath.Join(objects, "info", "alternates")); err == nil {
		for line := range strings.Lines(string(shared)) {
			if line = filepath.FromSlash(strings.TrimSpace(line)); !filepath.IsAbs(line) {
				line = filepath.Join(objects, line)
			}
			dirs = append(dirs, line)
		}
	}
	for _, dir := range dirs[:min(len(dirs), mostSymbolic)] {
		err = cmp.Or(err, filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			info, err := entry.Info()
			if err == nil {
				size += info.Size()
			}
			return err
		}))
	}
	return size, err
}

// versions returns the versions of the file, oldest first.
func (g *git) versions() (list []version, err error) {
	cmd := g.command("log", "--reverse", "--no-color", "--format=%H %ct", "--", g.path)
	var problem bytes.Buffer
	cmd.Stderr = &problem
	out, err := cmd.Output()
	if err != nil {
		if said := strings.TrimSpace(problem.String()); said != "" {
			err = errors.New(said)
		}
		return nil, fmt.Errorf("git log in %s: %w", g.dir, err)
	}
	for line := range strings.Lines(string(out)) {
		commit, at, ok := strings.Cut(strings.TrimSpace(line), " ")
		seconds, err := strconv.ParseInt(at, 10, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("git log in %s: %q is not a commit", g.dir, line)
		}
		list = append(list, version{commit, time.Unix(seconds, 0).UTC()})
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: no commit has the file %s; give its path in the repository", g.dir, g.path)
	}
	return list, nil
}

// feed returns the feed's address, from the newest readable version.
func (g *git) feed(versions []version) (feed string, err error) {
	for n := len(versions) - 1; n >= 0 && n > len(versions)-20; n-- {
		data, failed := g.show(versions[n])
		if failed == nil {
			var doc *feedhistory.Document
			if doc, feed, failed = parseSaved(data, ""); doc != nil {
				return feed, nil
			}
		}
		if err == nil {
			err = fmt.Errorf("%s: %w", g.name(versions[n]), failed)
		}
	}
	return "", err
}

func (g *git) name(v version) string { return g.path + " at " + v.commit[:min(len(v.commit), 10)] }

// start starts the process for showing versions.
func (g *git) start() (err error) {
	g.cat = g.command("cat-file", "--batch")
	if g.in, err = g.cat.StdinPipe(); err != nil {
		return err
	}
	out, err := g.cat.StdoutPipe()
	if err != nil {
		return err
	}
	g.out = bufio.NewReader(out)
	return g.cat.Start()
}

func (g *git) stop() {
	_ = g.in.Close()
	_ = g.cat.Wait()
}

var (
	errNone  = errors.New("the commit does not have the file")
	errLarge = fmt.Errorf("larger than %d MiB", mostSaved>>20)
	errLost  = errors.New("the repository lacks this version: it is a partial clone, or damaged")
)

// show returns a version of the file.
func (g *git) show(v version) ([]byte, error) {
	if strings.ContainsAny(g.path, "\r\n") {
		return nil, errors.New("the path has a line break")
	}
	if _, err := fmt.Fprintf(g.in, "%s:%s\n", v.commit, g.path); err != nil {
		return nil, fmt.Errorf("git cat-file: %w", err)
	}
	line, err := g.out.ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("git cat-file: %w", err)
	}
	fields := strings.Fields(line)
	if len(fields) != 3 || fields[1] != "blob" {
		if len(fields) == 3 && fields[1] == "tree" {
			return nil, fmt.Errorf("%s is a directory of the repository: give the path of one file", g.path)
		}
		return nil, g.missing(v)
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("git cat-file: %q", line)
	}
	if g.left -= size; g.left < 0 {
		return nil, fmt.Errorf("%s: the versions of %s have more than %d times the bytes of the repository: too many to be a feed's", g.dir, g.path, versionsRatio)
	}
	if size > mostSaved {
		_, err := io.CopyN(io.Discard, g.out, size+1)
		return nil, errors.Join(errLarge, err)
	}
	data := make([]byte, size+1) // with a line break
	if _, err := io.ReadFull(g.out, data); err != nil {
		return nil, fmt.Errorf("git cat-file: %w", err)
	}
	return data[:size], nil
}

// missing tells a version the repository lacks from one without the file.
func (g *git) missing(v version) error {
	err := g.command("rev-parse", "--verify", "--quiet", v.commit+":"+g.path).Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return errNone
	}
	return cmp.Or(err, errLost)
}
