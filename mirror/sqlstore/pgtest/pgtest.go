// Package pgtest runs a private PostgreSQL server for tests, and removes it
// after them.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Server is a running server. It listens on a socket in its directory, on no port, and
// trusts every connection. A crash of the machine may damage its data.
type Server struct {
	directory string          // short: the path of a socket has at most about 100 bytes
	input     io.Closer       // closing it ends the server
	exited    <-chan struct{} // closed when the server has exited
	databases atomic.Int64
}

// ErrMissing means there is no server: the environment does not have
// FEEDHISTORY_POSTGRES=required, or its programs are not installed.
var ErrMissing = errors.New("there is no PostgreSQL server for tests")

var (
	errUnasked = fmt.Errorf("%w: it runs with FEEDHISTORY_POSTGRES=required, as in .ci/run", ErrMissing)
	errAbsent  = fmt.Errorf("%w: its programs initdb and postgres are not installed", ErrMissing)
)

// required reports whether the environment asks for tests on PostgreSQL.
func required() bool { return os.Getenv("FEEDHISTORY_POSTGRES") == "required" }

// Main runs a package's tests with one server for all of them, and returns the
// exit code for TestMain: os.Exit(pgtest.Main(m, &server)). Without one, the server is nil: see
// Database.
func Main(m *testing.M, server **Server) int {
	s, err := Start()
	switch {
	case err == nil:
		*server = s
		defer s.Stop()
	case !errors.Is(err, ErrMissing):
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return 1
	}
	return m.Run()
}

// Database creates a new database and returns its URL. It is removed together
// with the server. Without a server it skips the test, or fails it if the
// environment has FEEDHISTORY_POSTGRES=required but not the server's programs.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	if s == nil {
		if required() {
			t.Fatal(errAbsent)
		}
		t.Skip(errUnasked)
	}
	return s.create(t, "template1")
}

// Copy creates a copy of a database of the server, to which nobody may be connected, and
// returns its URL. Copying tables takes less time than making them.
func (s *Server) Copy(t testing.TB, database string) string {
	t.Helper()
	u, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	return s.create(t, strings.TrimPrefix(u.Path, "/"))
}

func (s *Server) create(t testing.TB, template string) string {
	t.Helper()
	name := fmt.Sprintf("test%d", s.databases.Add(1))
	s.exec(t, fmt.Sprintf("CREATE DATABASE %s TEMPLATE %s STRATEGY file_copy", name, template)) // writes no log of what it copies
	return s.url(name)
}

// exec runs statements as the server's administrator.
func (s *Server) exec(t testing.TB, statements ...string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.url("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for _, statement := range statements {
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
}

func (s *Server) url(database string) string {
	return fmt.Sprintf("postgres://postgres@/%s?host=%s&sslmode=disable", database, url.QueryEscape(s.directory))
}

// Durable makes the server write as a server in use does, for measurements.
func (s *Server) Durable(t testing.TB) {
	t.Helper()
	s.exec(t, "ALTER SYSTEM SET fsync = on", "ALTER SYSTEM SET full_page_writes = on", "SELECT pg_reload_conf()")
}

// Start starts a server in a temporary directory, within FEEDHISTORY_POSTGRES_DIR if this is set:
// in memory, a database is made in a tenth of the time. The error matches ErrMissing if the
// environment does not have FEEDHISTORY_POSTGRES=required, or the programs are not installed.
func Start() (*Server, error) {
	if !required() {
		return nil, errUnasked
	}
	initdb, postgres, err := programs()
	if err != nil {
		return nil, err
	}
	// TMPDIR may be too long for a socket, or closed to the server's user.
	for _, parent := range []string{os.Getenv("FEEDHISTORY_POSTGRES_DIR"), "/tmp", "/var/tmp"} {
		s := &Server{}
		if s.directory, err = os.MkdirTemp(parent, "pgtest"); err != nil {
			return nil, err
		}
		if err = s.start(initdb, postgres); err == nil {
			return s, nil
		}
		err = errors.Join(err, os.RemoveAll(s.directory))
	}
	return nil, err
}

// programs returns the paths of the server's programs: from PATH, or else the
// newest in Debian's directories.
func programs() (initdb, postgres string, err error) {
	var directories []string
	if path, err := exec.LookPath("initdb"); err == nil {
		directories = append(directories, filepath.Dir(path))
	}
	installed, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.SortFunc(installed, func(a, b string) int { return version(b) - version(a) })
	for _, dir := range append(directories, installed...) {
		initdb, errA := exec.LookPath(filepath.Join(dir, "initdb"))
		postgres, errB := exec.LookPath(filepath.Join(dir, "postgres"))
		if errA == nil && errB == nil {
			return initdb, postgres, nil
		}
	}
	return "", "", errAbsent
}

func version(bin string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(bin)))
	return n
}

func (s *Server) start(initdb, postgres string) error {
	user, err := newUser()
	if err != nil {
		return err
	}
	if err := user.own(s.directory); err != nil {
		return err
	}
	data := filepath.Join(s.directory, "data")
	initialize := exec.Command(initdb, "--pgdata", data, "--username", "postgres", "--auth", "trust",
		"--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions")
	initialize.Dir = s.directory
	user.run(initialize)
	if out, err := initialize.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	settings, err := os.OpenFile(filepath.Join(data, "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = settings.WriteString("fsync = off\nfull_page_writes = off\n")
	if err := errors.Join(err, settings.Close()); err != nil {
		return err
	}
	return s.serve(postgres, data, user)
}

// watched runs the server's program in its directory until its input ends, which
// happens when the tests are over, however they ended. Nothing of the server is needed
// afterwards.
const watched = `
exec 3<&0
"$@" & server=$!
{ read -r _ <&3; : >ended; kill -QUIT $server; } & watch=$!
wait $server
if [ -e ended ]; then rm -rf "$PWD"; else kill $watch; fi`

// serve starts the server's program and waits until it answers.
func (s *Server) serve(postgres, data string, user user) (err error) {
	log, err := os.Create(filepath.Join(s.directory, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command("sh", "-c", watched, "sh", postgres, "-D", data, "-h", "", "-k", s.directory, "-N", "1000")
	command.Dir, command.Stdout, command.Stderr = s.directory, log, log
	user.run(command)
	if s.input, err = command.StdinPipe(); err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	exited := make(chan struct{})
	s.exited = exited
	go func() {
		_ = command.Wait() // the log says how it ended
		close(exited)
	}()
	for deadline := time.Now().Add(patience); ; {
		err := s.answers()
		if err == nil {
			return nil
		}
		select {
		case <-exited:
			said, _ := os.ReadFile(log.Name())
			return errors.Join(fmt.Errorf("postgres has ended:\n%s", said), s.Stop())
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return errors.Join(err, s.Stop())
		}
	}
}

// patience is how long the server may take to start or to end, on however busy a machine.
const patience = 2 * time.Minute

// answers returns nil if the server answers.
func (s *Server) answers() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// Stop stops the server and removes its data.
func (s *Server) Stop() error {
	err := s.input.Close()
	select {
	case <-s.exited:
		return errors.Join(err, os.RemoveAll(s.directory)) // a directory that its user cannot write to
	case <-time.After(patience):
		return errors.Join(err, errors.New("the server does not end"))
	}
}
