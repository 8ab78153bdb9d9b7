package conformance

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// A Reader reads the feed at a URL, and reports what it has. The state is a
// directory that is the same for all polls of a case, and new for each case; a
// reader that keeps nothing ignores it. An error means that the reader reports
// nothing.
type Reader func(ctx context.Context, url, state string) (*Result, error)

// Options are the settings of Run. The zero value is ready to use.
type Options struct {
	Parallel int           // Parallel is the number of cases to run at the same time; zero means 4.
	Timeout  time.Duration // Timeout is the maximum time for one poll; zero means 20 s.
	NoState  bool          // NoState skips the cases with several polls, for a reader that keeps nothing.
	Each     func(*Trial)  // Each, if not nil, is called after each case, one call at a time.
}

// A Trial is the result of one case.
type Trial struct {
	Name     string    `json:"name"`
	Why      string    `json:"why"`
	Level    Level     `json:"level"`
	Clauses  []string  `json:"clauses"`
	Outcome  Outcome   `json:"outcome"` // the worst outcome of the findings; none if the case was not run, or nothing was reported
	Findings []Finding `json:"findings,omitempty"`
	Problem  string    `json:"problem,omitempty"` // why the reader reported nothing
	Requests int       `json:"requests"`          // the number of requests, over all polls
}

// Run tests a reader on cases. The error is the suite's or the context's, never
// the reader's.
func Run(ctx context.Context, reader Reader, cases []*Case, options *Options) (*Report, error) {
	options = cmp.Or(options, new(Options))
	var (
		report = &Report{Version: Version, Trials: make([]*Trial, len(cases))}
		slots  = make(chan struct{}, cmp.Or(max(options.Parallel, 0), 4))
		errs   = make([]error, len(cases))
		group  sync.WaitGroup
		mu     sync.Mutex
	)
	for i, c := range cases {
		group.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			report.Trials[i], errs[i] = try(ctx, reader, c, options)
			if mu.Lock(); options.Each != nil && errs[i] == nil {
				options.Each(report.Trials[i])
			}
			mu.Unlock()
		})
	}
	group.Wait()
	if err := errors.Join(ctx.Err(), errors.Join(errs...)); err != nil {
		return nil, err
	}
	report.count()
	return report, nil
}

// try tests a reader on one case.
func try(ctx context.Context, reader Reader, c *Case, options *Options) (*Trial, error) {
	t := &Trial{Name: c.Name, Why: c.Why, Level: c.Level, Clauses: c.Clauses, Outcome: Silent}
	if ctx.Err() != nil || options.NoState && len(c.Polls) > 1 {
		return t, nil
	}
	session, err := c.Begin()
	if err != nil {
		return nil, err
	}
	defer session.Close()
	state, err := os.MkdirTemp("", "conformance-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(state)
	for again := true; again; again = session.Next() {
		ctx, cancel := context.WithTimeout(ctx, cmp.Or(options.Timeout, 20*time.Second))
		result, err := reader(ctx, session.URL, filepath.Clean(state))
		if ctx.Err() != nil {
			result, err = nil, errors.New("the reader did not finish in time")
		}
		cancel()
		if err != nil {
			result, t.Problem = nil, err.Error()
			if len(c.Polls) > 1 {
				t.Problem = fmt.Sprintf("poll %d: %s", session.Poll(), t.Problem)
			}
		}
		t.Findings = append(t.Findings, session.Judge(result)...)
	}
	t.Requests = len(session.Requests())
	t.Outcome = worst(t.Findings)
	return t, nil
}

func worst(findings []Finding) Outcome {
	order := map[Outcome]int{Silent: 0, Passed: 1, Warned: 2, Failed: 3}
	outcome := Silent
	for _, f := range findings {
		if order[f.Outcome] > order[outcome] {
			outcome = f.Outcome
		}
	}
	return outcome
}
