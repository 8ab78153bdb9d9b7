package pgtest

import (
	"bytes"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Pooled returns the URL of a database behind a PgBouncer of its own, which shares two
// connections in a pool mode: session, transaction or statement. It skips the test unless the
// environment has FEEDHISTORY_PGBOUNCER=required.
func (s *Server) Pooled(t testing.TB, database, mode string) string {
	t.Helper()
	program := pgbouncer(t)
	u, err := url.Parse(database)
	must(t, err)
	dir, err := os.MkdirTemp("/tmp", "pgbouncer") // a socket's path is short
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	must(t, os.Chmod(dir, 0o777))
	settings := filepath.Join(dir, "settings")
	must(t, os.WriteFile(settings, fmt.Appendf(nil, `[databases]
%s = host=%s user=postgres
[pgbouncer]
listen_addr =
listen_port = 5432
unix_socket_dir = %s
auth_type = any
pool_mode = %s
default_pool_size = %d
`, strings.TrimPrefix(u.Path, "/"), s.directory, dir, mode, poolSizes[mode]), 0o644))
	args := []string{"-q", settings}
	if os.Getuid() == 0 { // it refuses to run as root, and reads its settings before it changes the user
		args = append([]string{"-u", "postgres"}, args...)
	}
	c := exec.Command(program, args...)
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	must(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("unix", filepath.Join(dir, ".s.PGSQL.5432"))
		if err == nil {
			must(t, conn.Close())
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("pgbouncer does not answer: %v", err)
		}
	}
	u.RawQuery = url.Values{"host": {dir}, "sslmode": {"disable"}}.Encode()
	return u.String()
}

// poolSizes are the connections to the server: a session keeps its own.
var poolSizes = map[string]int{"session": 50, "transaction": 2, "statement": 2}

// pgbouncer returns the path of the program.
func pgbouncer(t testing.TB) string {
	t.Helper()
	if os.Getenv("FEEDHISTORY_PGBOUNCER") != "required" {
		t.Skip("it starts PgBouncer: it runs with FEEDHISTORY_PGBOUNCER=required, as in .ci/run")
	}
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if program, err := exec.LookPath(name); err == nil {
			return program
		}
	}
	t.Fatal("PgBouncer is required, but not installed")
	return ""
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
