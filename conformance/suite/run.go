package suite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory/internal/plain"
)

// A Reader reads the feed at a URL, and reports its contents. The state is a directory,
// the same for all polls of a case, and new for each case; a reader that keeps nothing
// ignores it. An error is a failed run, and everything required of it counts as not
// met. To find no feed is no error: it returns a Result with Failed, or a runError
// with Exited.
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
	Name        string       `json:"name"`
	Why         string       `json:"why"`
	Level       string       `json:"level"`
	Clauses     []string     `json:"clauses"`
	Flags       []string     `json:"flags,omitempty"`
	Outcome     Outcome      `json:"outcome"` // worst outcome of the findings; none if the case was not run, or nothing was reported
	Assessments []Assessment `json:"findings,omitempty"`
	Problem     string       `json:"problem,omitempty"` // why a run failed
	Requests    int          `json:"requests"`          // number of requests, over all polls

	runs    int
	refused int         // the runs ended by an exit where there is no feed
	failed  []*runError // the runs without a result, those included
}

// Run tests a reader on cases. The error is the suite's or the context's, never
// the reader's.
func Run(ctx context.Context, reader Reader, cases []*Case, options *Options) (*Report, error) {
	options = cmp.Or(options, new(Options))
	if reader == nil || slices.Contains(cases, nil) {
		return nil, errors.New("conformance: Run: the Reader is nil, or a Case is")
	}
	if err := plain.Check("conformance", plain.Number{Name: "Options.Parallel", Value: int64(options.Parallel)},
		plain.Number{Name: "Options.Timeout", Value: int64(options.Timeout)}); err != nil {
		return nil, err
	}
	var (
		report = &Report{Version: version, Trials: make([]*Trial, len(cases))}
		slots  = make(chan struct{}, cmp.Or(options.Parallel, 4))
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
	t := &Trial{Name: c.Name, Why: c.Why, Level: c.Level, Clauses: c.Clauses, Flags: c.Flags, Outcome: Silent}
	if ctx.Err() != nil || options.NoState && len(c.Polls) > 1 {
		return t, nil
	}
	session, err := c.begin()
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
		t.poll(ctx, reader, session, filepath.Clean(state), options)
	}
	t.Requests = len(session.Requests())
	t.Outcome = worst(t.Assessments)
	return t, nil
}

// poll runs the reader once, and judges it.
func (t *Trial) poll(ctx context.Context, reader Reader, session *session, state string, options *Options) {
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, dueKey{}, session.Due()), cmp.Or(options.Timeout, 20*time.Second))
	defer cancel()
	result, err := reader(ctx, session.URL, state)
	t.runs++
	if err == nil && ctx.Err() == nil {
		t.Assessments = append(t.Assessments, session.Judge(result)...)
		return
	}
	failure, ok := errors.AsType[*runError](err)
	switch {
	case ctx.Err() != nil && !ok:
		failure = &runError{Reason: "did not finish in time"}
	case !ok:
		failure = &runError{Reason: err.Error()}
	}
	t.failed = append(t.failed, failure)
	findings := session.Judge(&Result{Failed: true})
	if failure.Exited && !needsEntries(findings) { // there is no feed to read
		t.Assessments = append(t.Assessments, findings...)
		t.refused++
		return
	}
	t.Problem = failure.Reason
	if len(session.Case.Polls) > 1 {
		t.Problem = fmt.Sprintf("poll %d: %s", session.Poll(), failure.Reason)
	}
	t.Assessments = append(t.Assessments, errored(findings, failure.Reason)...)
}

// dueKey is the key, in the context of a Reader, of whether the feed is due.
type dueKey struct{}

// Due reports whether a [Reader] treats the feed as due, given its context. If it is
// false, the reader requests the feed only if it thinks the feed is due.
func Due(ctx context.Context) bool {
	due, ok := ctx.Value(dueKey{}).(bool)
	return due || !ok
}

// needsEntries reports whether a reader must have some entry; if so, there is a feed.
func needsEntries(findings []Assessment) bool {
	return slices.ContainsFunc(findings, func(f Assessment) bool {
		return f.What == "entry" && (f.Strength == must || f.Strength == should)
	})
}

// errored returns the findings as those of a failed run.
func errored(findings []Assessment, reason string) []Assessment {
	for i := range findings {
		findings[i].Outcome, findings[i].Message = Errored, reason
	}
	return findings
}

func worst(findings []Assessment) Outcome {
	order := map[Outcome]int{Silent: 0, Passed: 1, Warned: 2, Failed: 3, Errored: 4}
	outcome := Silent
	for _, f := range findings {
		if order[f.Outcome] > order[outcome] {
			outcome = f.Outcome
		}
	}
	return outcome
}
