package suite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory/internal/settings"
	"github.com/feedhistory/feedhistory/internal/website"
)

// A Reader reads the feed at a URL, and reports its contents. The state is a directory,
// the same for all polls of a case, and new for each case; a reader that keeps nothing
// ignores it. An error is a failed run, and everything required of it counts as not
// met. To find no feed is no error: it returns a Result with Failed.
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
	if err := settings.Check("conformance", settings.Number{Name: "Options.Parallel", Value: int64(options.Parallel)},
		settings.Number{Name: "Options.Timeout", Value: int64(options.Timeout)}); err != nil {
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

// published finds the ids in a website's documents: the content of an id, a
// guid, or the id in an item of a JSON feed.
var published = regexp.MustCompile(`(?s)<(?:\w+:)?id(?:\s[^>]*)?>(.*?)</|<(?:\w+:)?guid(?:\s[^>]*)?>(.*?)</|"id"\s*:\s*"?([^",}]*)`)

// A session is a running case, which is at one of its polls. Begin one with Case.begin, and
// close it.
type session struct {
	*website.Site
	Case *Case
	URL  string // the address to give to the reader

	ids map[string]bool
}

// begin serves the case's website on the loopback interface until the session
// is closed.
func (c *Case) begin() (*session, error) {
	site, err := c.site()
	if err == nil {
		err = site.Listen()
	}
	if err != nil {
		return nil, err
	}
	return &session{Site: site, Case: c, URL: site.URL + c.Start, ids: idsOf(c, site)}, nil
}

// Due reports whether the feed is due at the present poll. If it is not, the
// reader decides whether to request it.
func (s *session) Due() bool { return !slices.Contains(s.Case.IfDue, s.Poll()) }

// A request is a request to a case's website.
type request struct {
	Poll   int    `json:"poll"` // the number of the poll, from 1
	Method string `json:"method"`
	URL    string `json:"url"`                         // the path; for the other origin {{other}} and the path
	Status int    `json:"status"`                      // the status of the answer; zero if there was none
	ETag   string `json:"if_none_match,omitempty"`     // If-None-Match; "" if it was not sent
	Since  string `json:"if_modified_since,omitempty"` // If-Modified-Since; "" if it was not sent
	Agent  string `json:"user_agent,omitempty"`        // User-Agent
}

// Requests returns the requests so far.
func (s *session) Requests() []request {
	requests := []request{}
	for _, r := range s.Site.Requests() {
		requests = append(requests, request{
			Poll: r.Poll, Method: r.Method, URL: s.Site.Path(r.URL), Status: r.Status,
			ETag: r.Header.Get("If-None-Match"), Since: r.Header.Get("If-Modified-Since"), Agent: r.Header.Get("User-Agent"),
		})
	}
	return requests
}

// Judge judges the present poll by the reader's report, nil if there is none, and by
// its requests.
func (s *session) Judge(result *Result) []Assessment {
	poll := s.Poll()
	r := &round{result: result, path: s.Site.Path, ids: s.ids}
	for _, request := range s.Site.Requests() {
		if request.Poll == poll {
			r.requests = append(r.requests, request)
		}
	}
	if len(s.Case.Polls) == 0 {
		poll = 0
	}
	return s.Case.judge(poll, r)
}

// An Outcome is the judgement on a requirement.
type Outcome string

// The outcomes.
const (
	Passed Outcome = "pass"
	Warned Outcome = "warn" // a should or should-not is not met
	Failed Outcome = "fail" // a must or must-not is not met
	Silent Outcome = "none" // the reader does not report on the requirement's level

	Errored Outcome = "error" // the reader's run failed, so it has met nothing
)

// An Assessment is the judgement on one requirement, with its reason.
type Assessment struct {
	Requirement
	Outcome Outcome `json:"outcome"`
	Message string  `json:"message,omitempty"` // the fault
}

// A round is one poll of a case: a reader's report, and its requests. Its addresses are
// shortened to paths.
type round struct {
	result   *Result // nil if it reported nothing at all
	requests []website.Request
	path     func(url string) string
	ids      map[string]bool // the ids in all documents
}

// judge judges a poll of a case; the poll is 0 if the case has only one.
func (c *Case) judge(poll int, r *round) (findings []Assessment) {
	for _, required := range c.Requirements {
		if required.Poll != poll || required.Strength == may {
			continue
		}
		f := Assessment{Requirement: required, Outcome: Passed}
		holds, told, message := r.holds(required)
		forbidden := required.Strength == mustNot || required.Strength == shouldNot
		switch {
		case r.result == nil && levelOf(required.What) != levelRequests:
			f.Outcome, f.Message = Errored, "the reader reported nothing"
		case !told:
			f.Outcome = Silent
		case holds != forbidden:
		case required.Strength == should || required.Strength == shouldNot:
			f.Outcome, f.Message = Warned, message
		default:
			f.Outcome, f.Message = Failed, message
		}
		findings = append(findings, f)
	}
	return findings
}

// holds reports whether a requirement's outcome has occurred, and whether the reader
// reports on it. The message is the fault if the requirement is not met.
func (r *round) holds(q Requirement) (holds, told bool, message string) {
	switch {
	case q.What == "field":
		return r.field(q)
	case levelOf(q.What) == levelRequests:
		holds, message = r.asked(q)
		return holds, true, message
	case r.result == nil:
		return false, false, ""
	}
	switch q.What {
	case "entry":
		if r.versions(q.Of) == nil {
			return false, true, "the entry is missing"
		}
		return true, true, "the entry is there"
	case "version":
		return r.version(q)
	case "once":
		return r.once()
	case "other":
		return r.other()
	case "gap":
		holds = slices.ContainsFunc(r.result.Gaps, func(gap string) bool { return r.path(gap) == q.Of })
		return holds, r.result.Gaps != nil, fmt.Sprintf("the gaps are %q", r.result.Gaps)
	case "deleted":
		return slices.Contains(r.result.Deleted, q.Of), r.result.Deleted != nil, fmt.Sprintf("the deleted entries are %q", r.result.Deleted)
	}
	return r.verdict(q)
}

// versions returns the titles of all copies of an entry.
func (r *round) versions(id string) (titles []string) {
	for _, e := range r.result.Entries {
		if r.path(e.ID) == id {
			titles = append(titles, e.Title)
		}
	}
	return titles
}

// version reports whether the reader shows the right copy, and no outdated one beside it.
func (r *round) version(q Requirement) (holds, told bool, message string) {
	for _, title := range r.versions(q.Of) {
		if title != "" && title != q.Value {
			return false, true, fmt.Sprintf("the title is %q", title)
		}
		told = told || title != ""
	}
	return told, told, fmt.Sprintf("the title is %q", q.Value)
}

func (r *round) once() (holds, told bool, message string) {
	seen := map[string]bool{}
	for _, e := range r.result.Entries {
		if seen[e.ID] {
			return false, true, e.ID + " is there more than once"
		}
		seen[e.ID] = true
	}
	return true, len(seen) > 0, ""
}

// other reports whether there is an id no document has.
func (r *round) other() (holds, told bool, message string) {
	for _, e := range r.result.Entries {
		if !r.ids[r.path(e.ID)] && !r.ids[e.ID] {
			return true, true, fmt.Sprintf("no document has the id %q", e.ID)
		}
	}
	return false, len(r.result.Entries) > 0, ""
}

// verdict judges the reader's report of gaps. A reader reporting no feed at all has
// said enough.
func (r *round) verdict(q Requirement) (holds, told bool, message string) {
	verdict := r.result.Verdict
	if r.result.Failed {
		verdict = "failed"
	}
	if verdict == "" {
		return false, false, ""
	}
	message = "the verdict is " + verdict
	if q.What == "whole-without" {
		return verdict == "whole" && r.versions(q.Of) == nil, true, message
	}
	if q.Of == "partial" && verdict == "failed" {
		return true, true, message // it says it does not have the feed
	}
	return verdict == q.Of, true, message
}

// asked judges the requests to the website.
func (r *round) asked(q Requirement) (holds bool, message string) {
	n, conditional := 0, 0
	for _, request := range r.requests {
		if request.Method != http.MethodGet {
			continue
		}
		if at := r.path(request.URL); q.What == "requests" || at == q.Of {
			n++
			if request.Header.Get("If-None-Match") != "" || request.Header.Get("If-Modified-Since") != "" {
				conditional++
			}
		}
	}
	switch q.What {
	case "conditional":
		return n == conditional, fmt.Sprintf("%d of %d requests were unconditional", n-conditional, n)
	case "requests":
		most, _ := strconv.Atoi(q.Of)
		return n <= most, fmt.Sprintf("%d requests were made", n)
	}
	most, _ := strconv.Atoi(q.Value)
	return n <= most, fmt.Sprintf("the document was requested %s", times(n))
}

// field reports whether every request for a path had a header field with a
// value. Without a request for the path there is nothing to judge.
func (r *round) field(q Requirement) (holds, told bool, message string) {
	name, value, _ := strings.Cut(q.Value, " ")
	for _, request := range r.requests {
		if request.Method != http.MethodGet || r.path(request.URL) != q.Of {
			continue
		}
		if got := strings.Join(request.Header.Values(name), ", "); !strings.Contains(got, value) {
			return false, true, fmt.Sprintf("%s was %q", name, got)
		}
		told = true
	}
	return true, told, name + " was " + value
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// idsOf returns the ids in all requirements, and in all documents of a website.
func idsOf(c *Case, site *website.Site) map[string]bool {
	ids := map[string]bool{}
	if !slices.ContainsFunc(c.Requirements, func(q Requirement) bool { return q.What == "other" }) {
		return ids // they are not needed, and some websites are large
	}
	for _, q := range c.Requirements {
		if q.What == "entry" {
			ids[q.Of] = true
		}
	}
	for _, m := range published.FindAllStringSubmatch(site.Expand(c.Source), -1) {
		ids[strings.TrimSpace(html.UnescapeString(m[1]+m[2]+m[3]))] = true
	}
	return ids
}
