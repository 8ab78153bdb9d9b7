// Package pgtest runs a private PostgreSQL server for tests, and removes it
// after them.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// A Server is a running server. It trusts every connection from this machine.
type Server struct {
	port      int
	directory string
	input     io.Closer       // closing it ends the server
	exited    <-chan struct{} // closed when the server has exited
	databases atomic.Int64
}

// ErrMissing means the programs of the server are not installed.
var ErrMissing = errors.New("PostgreSQL's programs initdb and postgres are not installed")

// Main runs a package's tests with one server for all of them, and returns the
// exit code for TestMain: os.Exit(pgtest.Main(m, &server)). If the server's
// programs are not installed, the server is nil: see Database.
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
// environment has FEEDHISTORY_POSTGRES=required.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	if s == nil {
		if os.Getenv("FEEDHISTORY_POSTGRES") == "required" {
			t.Fatal(ErrMissing)
		}
		t.Skip(ErrMissing)
	}
	name := fmt.Sprintf("test%d", s.databases.Add(1))
	conn, err := pgx.Connect(t.Context(), s.url("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatal(err)
	}
	return s.url(name)
}

func (s *Server) url(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// Start starts a server in a temporary directory. The error matches ErrMissing
// if its programs are not installed.
func Start() (*Server, error) {
	initdb, postgres, err := programs()
	if err != nil {
		return nil, err
	}
	// Another program may take the port first, and the server's user may be unable to
	// enter TMPDIR.
	for _, parent := range []string{"", "/tmp", "/var/tmp"} {
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
	return "", "", ErrMissing
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
	if s.port, err = FreePort(); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(s.directory, "log"))
	if err != nil {
		return err
	}
	defer log.Close()
	command := exec.Command("sh", "-c", watched, "sh", postgres, "-D", data, "-p", strconv.Itoa(s.port),
		"-h", "127.0.0.1", "-c", "unix_socket_directories=", "-c", "max_connections=1000")
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
		err := s.answers(data)
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

// answers returns nil if the server answers, and not another one at its port.
func (s *Server) answers(data string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // another program may listen there, and be mute
	defer cancel()
	conn, err := pgx.Connect(ctx, s.url("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	var directory string
	err = conn.QueryRow(ctx, "SHOW data_directory").Scan(&directory)
	if err == nil && directory != data {
		err = fmt.Errorf("the server at port %d has its data in %s", s.port, directory)
	}
	return err
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
