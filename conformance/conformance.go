// Package conformance tests a reader or a publisher of RFC 5005 feeds that is written in
// Go: [Run] and [RunPublisher] are each one call in a test. Each case is a website on the
// loopback interface with one fault, and a subtest:
//
//	go test -run 'TestReader/walk/^archived$'
//
// The command "feedhistory conformance" tests programs in any language; package suite has
// its parts. FORMAT.md explains the cases.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"testing"
	"time"

	"github.com/feedhistory/feedhistory/conformance/suite"
)

// A Reader reads the feed at a URL, and reports its contents. The state is a directory,
// the same for all polls of a case, and new for each case; a reader that keeps nothing
// ignores it. Several goroutines call a Reader at the same time. To find no feed is no
// error but a [Result] with Failed: an error is a failed run, and fails the test.
type Reader func(ctx context.Context, url, state string) (*Result, error)

// A Result is a reader's report: its Entries; and, as far as it knows of them, its
// Verdict (whole, window, lossy or partial), the addresses of its Gaps, and the ids of
// Deleted entries. Failed means there is no feed. Nothing left out is judged.
type Result = suite.Result

// A ReaderEntry is an entry of a Result: its ID and, unless it is unknown, its Title.
type ReaderEntry = suite.ReaderEntry

// Options are the settings of Run. The zero value is ready to use.
type Options struct {
	Flags   []string      // Flags choose cases: rfc, http, security, goal, hostile, rss1, polls; with ! before one, cases without it.
	Skip    []string      // Skip has patterns of the names of cases to leave out, in the syntax of [path.Match], such as walk/rss-*.
	NoState bool          // NoState skips the cases with several polls, for a reader that keeps nothing.
	Strict  bool          // Strict makes a broken "should" fail the test; without it, the test logs it.
	Timeout time.Duration // Timeout is the maximum time for one poll; zero means 20 s. A negative one is an error.
}

// Run tests a reader: each case is a subtest. A broken "must" and a failed run fail it. A
// case about nothing the reader reports is skipped. The Options may be nil.
func Run(t *testing.T, reader Reader, o *Options) {
	t.Helper()
	if o == nil {
		o = &Options{}
	}
	cases, err := o.cases()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			report, err := suite.Run(t.Context(), suite.Reader(reader), []*suite.Case{c}, &suite.Options{Timeout: o.Timeout, NoState: o.NoState})
			if err != nil {
				t.Fatal(err)
			}
			judge(t, report.Trials[0], o.Strict)
		})
	}
}

// cases returns the cases to run.
func (o *Options) cases() ([]*suite.Case, error) {
	all, err := suite.Cases()
	if err == nil {
		all, err = suite.Flagged(all, o.Flags...)
	}
	return slices.DeleteFunc(all, func(c *suite.Case) bool {
		return slices.ContainsFunc(o.Skip, func(pattern string) bool {
			match, bad := path.Match(pattern, c.Name)
			if bad != nil {
				err = fmt.Errorf("conformance: Options.Skip: %q: %w", pattern, bad)
			}
			return match
		})
	}), err
}

// judge makes a case's findings a test's.
func judge(t *testing.T, trial *suite.Trial, strict bool) {
	t.Log(trial.Why)
	if trial.Problem != "" {
		t.Error(trial.Problem)
	}
	for _, f := range trial.Assessments {
		message := fmt.Sprintf("%s: %s (%s %s)", f.Requirement, f.Message, f.Basis, f.Clause)
		if f.Poll > 0 {
			message = fmt.Sprintf("poll %d: %s", f.Poll, message)
		}
		switch {
		case f.Outcome == suite.Failed, f.Outcome == suite.Warned && strict:
			t.Error(message)
		case f.Outcome == suite.Warned:
			t.Log("should: " + message)
		}
	}
	if trial.Outcome == suite.Silent {
		t.Skip("the reader reports nothing about this")
	}
}

// Due reports whether a [Reader] treats the feed as due, given its context. If it is
// false, the reader requests the feed only if it thinks the feed is due.
func Due(ctx context.Context) bool { return suite.Due(ctx) }

// A PublisherTest is a test of a publisher: the URL of its subscription document, and
// steps that make it Add, Edit and Delete entries. Use a publisher for tests, because the
// added entries stay. A nil step is skipped.
type PublisherTest = suite.PublisherTest

// RunPublisher tests a publisher: each duty is a subtest. A broken "must" fails it, and a
// broken "should" is logged. A duty nothing has shown is skipped.
func RunPublisher(t *testing.T, p *PublisherTest) {
	t.Helper()
	if p == nil {
		t.Fatal(errors.New("conformance: RunPublisher: the Publisher is nil"))
	}
	report, err := p.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, duty := range report.Duties {
		t.Run(duty.Name, func(t *testing.T) {
			t.Logf("%s %s (%s, %s)", duty.Text, duty.Strength, duty.Basis, duty.Clause)
			for _, message := range duty.Messages {
				t.Log(message)
			}
			switch duty.Outcome {
			case suite.Failed:
				t.Fail()
			case suite.Silent:
				t.Skip("nothing has shown it")
			}
		})
	}
}
