package fleet_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"runtime/pprof"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/fleet"
	"github.com/feedhistory/feedhistory/mirror"
)

// processEnv makes the test's program a worker, according to a processConfig.
const processEnv = "FLEET_TEST_WORKER"

type processConfig struct {
	DSN                 string
	Every, Slice, Pause time.Duration
	Hosts               int
	Tries               int // zero means one
	MaxWait             time.Duration
	Proxy               string // where all requests go; "" means to their hosts
	Random              bool   // whether batches have random sizes
	Commits             string // a file in which each acknowledged commit is recorded; "" for none
	Waits               string // a file in which each wait that a host has asked for is recorded; "" for none
	Profile             string // a file for a CPU profile; "" for none
	Metrics             string // the beginning of the name of a file for the metrics at the end; "" for none
}

// A process is a worker in a separate process.
type process struct {
	*exec.Cmd
	ended chan error
}

// startProcess starts a worker and waits until it is running.
func startProcess(t testing.TB, config processConfig) *process {
	t.Helper()
	text, err := json.Marshal(config)
	require.NoError(t, err)
	p := &process{exec.Command(os.Args[0]), make(chan error, 1)}
	p.Env = append(os.Environ(), processEnv+"="+string(text))
	p.Stderr = os.Stderr
	out, err := p.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.Start())
	said, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "at work\n", said)
	go func() { p.ended <- p.Wait() }()
	t.Cleanup(p.kill)
	return p
}

// kill kills the process, unless it has ended.
func (p *process) kill() {
	_ = p.Process.Kill()
	<-p.ended
	p.ended <- nil
}

// stop makes the process end by itself.
func (p *process) stop(t testing.TB) {
	t.Helper()
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	err := <-p.ended
	p.ended <- err
	require.NoError(t, err)
}

// runProcess is the program of a process. It begins again if the database is down at
// the moment, or goes down before the worker is at work.
func runProcess(text string) error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer cancel()
	var config processConfig
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		return err
	}
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		atWork, err := runWorker(ctx, config)
		if err == nil || atWork || time.Now().After(end) {
			return err
		}
	}
}

// runWorker runs a worker, and says when it is at work.
func runWorker(ctx context.Context, config processConfig) (atWork bool, err error) {
	db, err := fleet.Open(ctx, config.DSN)
	if err != nil {
		return false, err
	}
	defer db.Close()
	if config.Commits != "" {
		commits, err := os.OpenFile(config.Commits, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return false, err
		}
		defer commits.Close()
		db.Store = noting{db.Store, commits}
	}
	if config.Profile != "" {
		profile, err := os.Create(config.Profile)
		if err != nil {
			return false, err
		}
		defer profile.Close()
		if err := pprof.StartCPUProfile(profile); err != nil {
			return false, err
		}
		defer pprof.StopCPUProfile()
	}
	w := config.worker(db)
	if config.Waits != "" {
		waits, err := os.OpenFile(config.Waits, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			return false, err
		}
		defer waits.Close()
		w.Client.Wrap = func(next http.RoundTripper) http.RoundTripper { return noteOfWaits{next, waits} }
	}
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	for !w.Running() {
		select {
		case err := <-ended:
			return false, err
		case <-time.After(5 * time.Millisecond):
		}
	}
	fmt.Println("at work")
	err = <-ended
	if config.Metrics != "" {
		answer := httptest.NewRecorder()
		w.Handler().ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		err = errors.Join(err, os.WriteFile(config.Metrics+fmt.Sprint(os.Getpid()), answer.Body.Bytes(), 0o600))
	}
	return true, err
}

func (config processConfig) worker(db *fleet.Database) *fleet.Worker {
	w := &fleet.Worker{
		Database: db, Every: config.Every, Slice: config.Slice, Pause: config.Pause, Tries: 100, Hosts: config.Hosts,
		Client: &feedhistory.Client{
			AllowPrivate: true, PerHost: 1, Tries: cmp.Or(config.Tries, 1), MaxWait: config.MaxWait,
		},
	}
	if config.Random {
		w.Random()
	}
	switch {
	case config.Proxy != "":
		w.Client.Transport = proxyTransport(config.Proxy)
	case config.Waits != "":
		w.Client.Transport = stamp{http.DefaultTransport}
	}
	return w
}

// proxyTransport sends all requests to a proxy.
func proxyTransport(proxy string) *http.Transport {
	u, err := url.Parse(proxy)
	return &http.Transport{
		Proxy:               func(*http.Request) (*url.URL, error) { return u, err },
		MaxIdleConnsPerHost: 1000,
	}
}

// A noting store records each commit that it has acknowledged.
type noting struct {
	mirror.Store
	file *os.File
}

func (n noting) Commit(ctx context.Context, c *mirror.Commit) error {
	err := n.Store.Commit(ctx, c)
	if err == nil {
		_, err = fmt.Fprintln(n.file, c.Feed.Commits, c.Feed.URL)
	}
	return err
}
