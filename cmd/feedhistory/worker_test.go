package main

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

// A worker is a process that runs the command again and again, as starting a process for each
// call takes most of a script's time. Scripts that start a server, send a signal or kill have
// processes of their own for it, and in a long run all calls have.
type worker struct {
	process *exec.Cmd
	calls   *gob.Encoder
	results *gob.Decoder
	end     func() error
}

type workerCall struct {
	Dir, Stdin string
	Env, Args  []string
}

type workerResult struct {
	Status         int
	Stdout, Stderr string
}

const workerVariable = "FEEDHISTORY_TEST_WORKER"

// work is the program of a worker.
func work() {
	calls, results := gob.NewDecoder(os.Stdin), gob.NewEncoder(os.Stdout)
	os.Stdin, os.Stdout = nil, os.Stderr
	debug.SetGCPercent(400)      // as in feedtest.Run
	const windows = "SYSTEMROOT" // which every process has there, as of os/exec
	root, isSet := os.LookupEnv(windows)
	for {
		var c workerCall
		if calls.Decode(&c) != nil {
			return
		}
		os.Clearenv()
		err := os.Chdir(c.Dir)
		if isSet {
			err = errors.Join(err, os.Setenv(windows, root))
		}
		for _, variable := range c.Env {
			name, value, _ := strings.Cut(variable, "=")
			err = errors.Join(err, os.Setenv(name, value))
		}
		if err != nil {
			panic(err)
		}
		var stdout, stderr bytes.Buffer
		status := run(context.Background(), c.Args, strings.NewReader(c.Stdin), &stdout, &stderr)
		if err := results.Encode(workerResult{status, stdout.String(), stderr.String()}); err != nil {
			panic(err)
		}
	}
}

// workers are those waiting for a call.
var workers struct {
	sync.Mutex
	idle []*worker
}

func startWorker() (*worker, error) {
	w := &worker{process: exec.Command(os.Args[0])}
	w.process.Env, w.process.Stderr = append(os.Environ(), workerVariable+"=1"), os.Stderr
	in, errIn := w.process.StdinPipe()
	out, errOut := w.process.StdoutPipe()
	if err := errors.Join(errIn, errOut); err != nil {
		return nil, err
	}
	w.calls, w.results = gob.NewEncoder(in), gob.NewDecoder(out)
	w.end = func() error { return errors.Join(in.Close(), w.process.Wait()) }
	return w, w.process.Start()
}

// endWorkers ends all workers, once no script runs.
func endWorkers() (err error) {
	for _, w := range workers.idle {
		err = errors.Join(err, w.end())
	}
	return err
}

// callWorker runs the command in a worker.
func callWorker(c workerCall) (r workerResult, err error) {
	workers.Lock()
	var w *worker
	if last := len(workers.idle) - 1; last >= 0 {
		w, workers.idle = workers.idle[last], workers.idle[:last]
	}
	workers.Unlock()
	if w == nil {
		if w, err = startWorker(); err != nil {
			return r, err
		}
	}
	if err := errors.Join(w.calls.Encode(c), w.results.Decode(&r)); err != nil {
		return r, errors.Join(err, w.end())
	}
	workers.Lock()
	defer workers.Unlock()
	workers.idle = append(workers.idle, w)
	return r, nil
}

var (
	ofCommand = regexp.MustCompile(`^(\[.*\] )?(! )?exec feedhistory .*[^&]$|^(\[.*\] )?status \d+ feedhistory `)
	ofInput   = regexp.MustCompile(`^stdin `)
	ofEnv     = regexp.MustCompile(`^(\[.*\] )?env `)
)

// forWorkers returns the script with call in place of exec where a worker does, and with the
// inputs and variables of these calls.
func forWorkers(script string) string {
	lines := strings.Split(script, "\n")
	for i, line := range lines {
		next := slices.IndexFunc(lines[i+1:], func(line string) bool { return line != "" && line[0] != '#' })
		switch {
		case strings.HasPrefix(line, "-- "): // a file of the script
			return strings.Join(lines, "\n")
		case ofCommand.MatchString(line):
			lines[i] = strings.Replace(line, "exec feedhistory ", "call ", 1)
		case ofInput.MatchString(line) && next >= 0 && ofCommand.MatchString(lines[i+1+next]):
			lines[i] = strings.Replace(line, "stdin ", "input ", 1)
		case ofEnv.MatchString(line):
			lines[i] = strings.Replace(line, "env ", "variable ", 1)
		}
	}
	return strings.Join(lines, "\n")
}

// runScripts runs the scripts of the given names, or all, with databases that newDB makes; ""
// is a file to be made.
func runScripts(t *testing.T, newDB func() string, names ...string) {
	params := scripts(newDB)
	if len(names) == 0 {
		names = []string{"*"}
	}
	for _, name := range names {
		params.Files = append(params.Files, feedtest.Glob(t, filepath.Join("testdata", "script", name+".txtar"))...)
	}
	if !*update && !feedtest.LongRun() {
		dir := t.TempDir()
		for i, file := range params.Files {
			params.Files[i] = filepath.Join(dir, filepath.Base(file))
			require.NoError(t, os.WriteFile(params.Files[i], []byte(forWorkers(string(feedtest.ReadFile(t, file)))), 0o600))
		}
	}
	testscript.Run(t, params)
}

// scriptState is the input of the next call of a script in a worker.
type scriptState struct {
	variables []string // names
	stdin     string
}

func stateOf(ts *testscript.TestScript) *scriptState { return ts.Value("state").(*scriptState) }

// variable NAME=VALUE... is env for calls in workers, too.
func setVariables(ts *testscript.TestScript, _ bool, args []string) {
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok {
			ts.Fatalf("usage: variable NAME=VALUE...")
		}
		ts.Setenv(name, value)
		stateOf(ts).variables = append(stateOf(ts).variables, name)
	}
}

// input FILE is stdin for the next call in a worker.
func setInput(ts *testscript.TestScript, _ bool, args []string) {
	stateOf(ts).stdin = ts.ReadFile(args[0])
}

// call ARG... is exec feedhistory ARG..., in a worker.
func callScript(ts *testscript.TestScript, neg bool, args []string) {
	if status := callInWorker(ts, args); neg != (status != 0) {
		ts.Fatalf("unexpected exit status %d", status)
	}
}

func callInWorker(ts *testscript.TestScript, args []string) (status int) {
	state := stateOf(ts)
	c := workerCall{Dir: ts.MkAbs("."), Stdin: state.stdin, Args: args}
	state.stdin = ""
	for _, name := range state.variables {
		c.Env = append(c.Env, name+"="+ts.Getenv(name))
	}
	r, err := callWorker(c)
	ts.Check(err)
	fmt.Fprint(ts.Stdout(), r.Stdout)
	fmt.Fprint(ts.Stderr(), r.Stderr)
	return r.Status
}
