package readers

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path"
	"path/filepath"
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
func readGit(ctx context.Context, s *Source, _ string, yield func(Item) error) error {
	g := &git{ctx: ctx, dir: s.Name, path: s.Path}
	versions, err := g.versions()
	if err == nil {
		err = g.locate()
	}
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
		case errors.Is(err, errLarge):
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

// A git runs the git program on a repository.
type git struct {
	ctx       context.Context
	dir, path string

	cat *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// command returns a command that changes nothing, and runs nothing named by the
// repository's configuration.
func (g *git) command(args ...string) *exec.Cmd {
	args = append([]string{"-C", g.dir, "--no-pager", "--no-optional-locks", "-c", "log.showSignature=false", "-c", "core.fsmonitor=false", "--literal-pathspecs"}, args...)
	cmd := exec.CommandContext(g.ctx, "git", args...)
	cmd.WaitDelay = time.Second
	return cmd
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

// locate makes the path one from the root of the repository, as commits name files.
func (g *git) locate() error {
	prefix, err := g.command("rev-parse", "--show-prefix").Output()
	if err != nil {
		return fmt.Errorf("git rev-parse in %s: %w", g.dir, err)
	}
	g.path = path.Join(strings.TrimSuffix(string(prefix), "\n"), filepath.ToSlash(g.path))
	return nil
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
		return nil, errNone
	}
	size, err := strconv.ParseInt(fields[2], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("git cat-file: %q", line)
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
