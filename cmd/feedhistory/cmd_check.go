package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/check"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/rivo/uniseg"
)

// A checkCommand is the verb check.
type checkCommand struct {
	Sources         []string `arg:"" name:"URL|FILE|-" help:"The documents: URLs, files, or - for standard input."`
	Chain           bool     `help:"Check not only each document, but also the whole chain of documents from it."`
	Base            string   `placeholder:"URL" help:"URL where the first FILE will be served; with a slash at the end, the URL of its directory."`
	Profile         string   `default:"rfc5005" enum:"rfc5005,atom-pmh,datareplication,modified-range" placeholder:"NAME" help:"The rules: rfc5005 (the default), atom-pmh, or, with --chain, datareplication or modified-range."`
	Digests         string   `placeholder:"FILE" help:"With --chain: report the archives that have changed since the last run, and record them in a file for the next."`
	Save            string   `placeholder:"FILE" help:"With --chain: record the archives in a file, for --against."`
	Against         string   `placeholder:"FILE" help:"With --chain: report the archives that have changed since --save recorded them."`
	Representations bool     `help:"With --profile atom-pmh: also request a sample of 20 records' representations."`
	MaxDocuments    int      `default:"10000" least:"1" placeholder:"N" help:"With --chain: read at most N documents (default: ${default})."`

	findingsFormat
	command.NetworkFlags
	command.Login
}

// Help returns the text of --help before the flags.
func (c *checkCommand) Help() string {
	return "The exit status is 1 if check finds an error or cannot read a file, and 0 if it finds only warnings and notes. " +
		"With --chain and --base, check follows the chain of a FILE through the files of its directory, as they will be served, and makes no request."
}

// Validate refuses URLs that cannot be fetched, and incompatible flags.
func (c *checkCommand) Validate() error {
	switch {
	case c.Base != "" && !terminal.IsWeb(c.Base):
		return errors.New("--base: " + c.Base + " is not an absolute URL")
	case (c.Digests != "" || c.Save != "" || c.Against != "") && !c.Chain:
		return errors.New("--digests, --save and --against are for --chain")
	case c.Digests != "" && (c.Save != "" || c.Against != ""):
		return errors.New("--digests both compares and saves: it excludes --save and --against")
	case c.profile() > check.AtomPMH && (!c.Chain || !allURLs(c.Sources)):
		return errors.New("--profile: " + c.Profile + " is for --chain and URLs, as it is about HTTP header fields")
	case c.Representations && c.profile() != check.AtomPMH:
		return errors.New("--representations is for --profile atom-pmh")
	}
	files := 0
	for i, source := range c.Sources {
		source = terminal.SourceAddress(source)
		c.Sources[i] = source
		if terminal.IsURL(source) {
			if err := terminal.CheckURL(source); err != nil {
				return err
			}
			continue
		}
		if files++; c.Chain && c.Base == "" {
			return errors.New("--chain: a file needs --base, the URL where it will be served")
		}
		if source == "-" && c.Chain {
			return errors.New("--chain: standard input has no directory that could contain the chain")
		}
	}
	if files > 1 && c.Base != "" && !strings.HasSuffix(c.Base, "/") {
		return errors.New("--base: for several files, give the URL of their directory, with a slash at the end")
	}
	return nil
}

func allURLs(sources []string) bool {
	return !slices.ContainsFunc(sources, func(source string) bool { return !terminal.IsURL(source) })
}

// Run checks the sources and prints the findings.
func (c *checkCommand) Run(w *command.World) error {
	run := &checkRun{checkCommand: c, World: w, ofPages: map[string]bool{}}
	if err := run.remembered(); err != nil {
		return err
	}
	for _, source := range c.Sources {
		if err := run.source(source); err != nil && run.documents == 0 {
			return show.Failure(source, err)
		} else if err != nil {
			return errors.Join(run.print(), show.Failure(source, err))
		}
	}
	run.acceptLone()
	if err := run.representations(); err != nil {
		return errors.Join(run.print(), err)
	}
	if err := run.print(); err != nil {
		return err
	}
	if file := cmp.Or(c.Digests, c.Save); file != "" {
		if err := run.digests.Write(file); err != nil {
			return err
		}
	}
	if run.failed || check.HasErrors(run.found) {
		return terminal.StatusError(terminal.ExitFailed)
	}
	return nil
}

// A checkRun is one run of the verb.
type checkRun struct {
	*checkCommand
	*command.World
	digests   *check.Digests
	found     []check.Finding
	documents int
	samples   []*check.Sample // for each source, with --representations
	failed    bool            // a file could not be read at all
	ofPages   map[string]bool // addresses of feeds named by web pages
	lone      []loneArchive   // archives that name no other
	preceding map[string]bool // addresses named as prev-archive by subscription documents
}

// remembered reads the digests recorded by an earlier run.
func (r *checkRun) remembered() (err error) {
	if err := errors.Join(terminal.CheckTarget("--digests", r.Digests), terminal.CheckTarget("--save", r.Save)); err != nil {
		return err
	}
	switch file := cmp.Or(r.Digests, r.Against); {
	case file != "":
		if r.Against != "" {
			if _, err := os.Stat(r.Against); err != nil {
				return terminal.UsageError("--against: " + r.Against + ": " + show.Detail(err))
			}
		}
		r.digests, err = check.ReadDigests(file)
	case r.Save != "":
		r.digests = new(check.Digests)
	}
	return err
}

func (c *checkCommand) profile() check.Profile {
	for _, p := range []check.Profile{check.AtomPMH, check.DataReplication, check.ModifiedRange} {
		if c.Profile == p.String() {
			return p
		}
	}
	return check.RFC5005
}

// source checks the document or the chain named by an argument. It returns an error
// only if the credentials are wrong or the context has ended.
func (r *checkRun) source(arg string) error {
	switch {
	case r.Chain && terminal.IsURL(arg):
		client, err := r.Authorized(arg)
		if err != nil {
			return err
		}
		return r.chain(arg, client, func(url string) string { return url })
	case r.Chain && !r.exists(arg):
		return nil
	case r.Chain:
		files := &fileTransport{File: arg, URL: r.base(arg)}
		client := &feedhistory.Client{Transport: files}
		return r.chain(files.URL, client, files.Name)
	}
	doc, err := r.read(arg)
	if feed := r.feedAt(arg, err); feed != "" {
		arg = feed
		doc, err = r.read(arg)
	}
	if r.Ctx.Err() != nil {
		return r.Ctx.Err()
	}
	if _, damaged := errors.AsType[*feedhistory.ParseError](err); err != nil && doc == nil && !damaged && !terminal.IsURL(arg) {
		r.unreadable(arg, err)
		return nil
	}
	r.documents++
	if sample := r.sample(); sample != nil && doc != nil {
		sample.Add(doc)
	}
	r.relate(doc, arg)
	r.add(check.Document(doc, err, r.profile()), arg, err)
	return nil
}

// A loneArchive is an archive document that names no other.
type loneArchive struct{ self, file string }

// relate records how a document belongs to the others.
func (r *checkRun) relate(doc *feedhistory.Document, arg string) {
	if doc == nil {
		return
	}
	prev, ok := doc.Links.Rel(feedhistory.RelPrevArchive)
	switch self, _ := doc.Links.Rel(feedhistory.RelSelf); {
	case doc.Archive && !ok:
		r.lone = append(r.lone, loneArchive{self.Href, arg})
	case ok && !doc.Archive:
		if r.preceding == nil {
			r.preceding = map[string]bool{}
		}
		r.preceding[prev.Href] = true
	}
}

// acceptLone removes the finding that an archive names no other, if the subscription
// document that precedes it was checked, too: a feed's first archive is alone.
func (r *checkRun) acceptLone() {
	for _, archive := range r.lone {
		if r.preceding[archive.self] {
			r.found = slices.DeleteFunc(r.found, func(f check.Finding) bool {
				return f.Code == "archive-without-links" && (f.URL == archive.file || f.URL == archive.self)
			})
		}
	}
}

// feedAt returns the address of the feed of the web page an argument names, given the
// error of reading the page; "" if there is none. It does not follow a page named by
// another page as its feed.
func (r *checkRun) feedAt(arg string, err error) string {
	if !terminal.IsURL(arg) || r.ofPages[arg] {
		return ""
	}
	client, wrong := r.Authorized(arg)
	if wrong != nil {
		return ""
	}
	defer client.CloseIdle()
	feeds := command.FeedsOf(r.Ctx, client, arg, err)
	if len(feeds) == 0 {
		return ""
	}
	r.TellFeeds(arg, feeds)
	r.ofPages[feeds[0].Href] = true
	return feeds[0].Href
}

// feedOfPage does the same as feedAt, given a finding on the first document of a chain.
func (r *checkRun) feedOfPage(feed string, f check.Finding, client *feedhistory.Client) string {
	if f.Code != "not-a-feed" || f.URL != feed || !slices.Contains(r.Sources, feed) { // a file is never requested
		return ""
	}
	_, err := client.Get(r.Ctx, feed)
	return r.feedAt(feed, err)
}

// unreadable reports an unreadable file. The check continues with the others.
func (r *checkRun) unreadable(file string, err error) {
	r.failed = true
	r.Say(show.Failure(file, err).Error())
}

func (r *checkRun) exists(file string) bool {
	f, err := r.Open(file)
	if err != nil {
		r.unreadable(file, err)
		return false
	}
	return f.Close() == nil
}

// add keeps the findings on a document, under the name given by the argument.
func (r *checkRun) add(found []check.Finding, arg string, err error) {
	for _, f := range found {
		if !terminal.IsURL(arg) {
			f.URL = arg
		} else if f.URL == "" {
			f.URL = terminal.WithoutUser(arg)
		}
		if todo := show.Remedy(err); terminal.IsURL(arg) && todo != "" && f.Level == check.Error && f.Line == 0 {
			f.Hint = todo
		}
		r.found = append(r.found, f)
	}
}

func (r *checkRun) read(arg string) (*feedhistory.Document, error) {
	if terminal.IsURL(arg) {
		return r.Document(arg, "")
	}
	return r.Document(arg, r.base(arg))
}

// base returns the URL where a file will be served. A base with a slash at its end is
// the URL of the first file's directory.
func (r *checkRun) base(arg string) string {
	if !strings.HasSuffix(r.Base, "/") || arg == "-" {
		return r.Base
	}
	first := arg
	for _, source := range r.Sources {
		if !terminal.IsURL(source) && source != "-" {
			first = source
			break
		}
	}
	rel, err := filepath.Rel(filepath.Dir(first), arg)
	base, baseErr := url.Parse(r.Base)
	if err != nil || baseErr != nil {
		return r.Base
	}
	return base.ResolveReference(&url.URL{Path: filepath.ToSlash(rel)}).String()
}

// chain checks a whole chain. Findings name each document by the result of name for its
// URL.
func (r *checkRun) chain(feed string, client *feedhistory.Client, name func(url string) string) error {
	defer client.CloseIdle()
	client.Budget.Documents = r.MaxDocuments
	c := check.Chain{Profile: r.profile(), Digests: r.digests, Sample: r.sample()}
	bar := r.NewBar(0, "reading the chain")
	bar.Update(func() string { return terminal.Count(r.World.Traffic().Answers(), "answer", "answers") })
	defer func() { bar.End() }()
	defer func() { r.documents += c.Documents() }() // even if an interrupt ends the walk
	for f, err := range c.Walk(r.Ctx, client, feed) {
		switch {
		case r.Ctx.Err() != nil:
			return r.Ctx.Err()
		case err != nil:
			r.add(check.Document(nil, err, r.profile()), feed, err)
		default:
			if of := r.feedOfPage(feed, f, client); of != "" {
				bar.End()
				bar = nil
				return r.chain(of, client, name)
			}
			f.URL = name(f.URL)
			r.found = append(r.found, f)
		}
	}
	return nil
}

// sample returns a new sample for a source; nil without --representations.
func (r *checkRun) sample() *check.Sample {
	if !r.Representations {
		return nil
	}
	s := new(check.Sample)
	r.samples = append(r.samples, s)
	return s
}

// representations checks the samples. The credentials are for the feeds' origins.
func (r *checkRun) representations() error {
	if len(r.samples) == 0 {
		return nil
	}
	client, err := r.Authorized(slices.DeleteFunc(slices.Clone(r.Sources), func(s string) bool { return !terminal.IsURL(s) })...)
	if err != nil {
		return err
	}
	defer client.CloseIdle()
	for _, s := range r.samples {
		for f, err := range s.Check(r.Ctx, client) {
			if err != nil {
				return err
			}
			r.found = append(r.found, f)
		}
	}
	return nil
}

// print prints the findings.
func (r *checkRun) print() error {
	if r.IsForPrograms() {
		return r.Write(r.Stdout, r.found)
	}
	p := terminal.NewPage(r.Stdout)
	if r.documents > 0 || !r.failed {
		showFindings(p, r.found, r.documents)
	}
	return p.Err
}

// showFindings shows the findings on each document, with their lines, and a summary. It shows
// each hint on a kind of finding once.
func showFindings(p *terminal.Page, found []check.Finding, documents int) {
	var urls []string
	byURL := map[string][]check.Finding{}
	levels := map[check.Level]int{}
	for _, f := range found {
		if _, ok := byURL[f.URL]; !ok {
			urls = append(urls, f.URL)
		}
		byURL[f.URL] = append(byURL[f.URL], f)
		levels[f.Level]++
	}
	hinted := map[string]bool{}
	for _, url := range urls {
		p.Line(terminal.Clean(documentName(url)))
		for _, f := range byURL[url] {
			showFinding(p, f, !hinted[f.Code+f.Hint])
			hinted[f.Code+f.Hint] = true
		}
		p.Line("")
	}
	sum := terminal.Count(documents, "document", "documents") + " checked: "
	if len(found) == 0 {
		p.Line(sum + "nothing to report")
		return
	}
	p.Para("", "", sum+strings.Join([]string{
		terminal.Count(levels[check.Error], "error", "errors"),
		terminal.Count(levels[check.Warning], "warning", "warnings"),
		terminal.Count(levels[check.Note], "note", "notes"),
	}, ", "))
}

func documentName(url string) string {
	switch url {
	case "-":
		return "standard input"
	case "":
		return "(a document without a URL)"
	}
	return url
}

// showFinding shows one finding.
func showFinding(p *terminal.Page, f check.Finding, hint bool) {
	const indent = "      "
	text := fmt.Sprintf("%v: %s [%s, %s]", f.Level, f.Message, f.Code, f.Clause)
	if f.Line > 0 {
		text = fmt.Sprintf("%d:%d: %s", f.Line, f.Column, text)
	}
	p.Para("  ", indent, text)
	showQuote(p, indent, f.Quote)
	if hint && f.Hint != "" {
		p.Para(indent, indent, "→ "+f.Hint)
	}
}

// showQuote shows a line of a document, with a caret below the place of a finding.
func showQuote(p *terminal.Page, indent string, q check.Quote) {
	before, after := strings.TrimLeft(cleanLine(q.Before), " "), strings.TrimRight(cleanLine(q.After), " ")
	if before == "" && after == "" {
		return
	}
	width := p.Columns() - len(indent) - 2
	most := min(40, width/2) // columns before the place
	for uniseg.StringWidth(before) > most {
		runes := []rune(strings.TrimPrefix(before, "…"))
		before = "…" + string(runes[max(1, len(runes)/4):])
	}
	p.Line(indent + "| " + terminal.Cut(before+after, width))
	p.Line(indent + "| " + strings.Repeat(" ", uniseg.StringWidth(before)) + "^")
}

// cleanLine does the same as clean, but keeps each space, because the caret on the next
// findingLine marks a place in the text.
func cleanLine(s string) string {
	words := strings.Split(strings.ReplaceAll(s, "\t", " "), " ")
	return strings.Join(show.Each(words, terminal.Clean), " ")
}

// findingsFormat are the flags for findings in a form for programs.
type findingsFormat struct {
	JSON  bool `name:"json" xor:"format" help:"Print JSON Lines (one object a line): each finding."`
	SARIF bool `name:"sarif" xor:"format" help:"Print SARIF 2.1.0, for build systems."`
}

// IsForPrograms reports whether the flags ask for such a form.
func (f *findingsFormat) IsForPrograms() bool { return f.JSON || f.SARIF }

// Write writes findings in the form the flags ask for.
func (f *findingsFormat) Write(w io.Writer, found []check.Finding) error {
	var out bytes.Buffer
	if f.SARIF {
		if err := check.WriteSARIF(&out, found); err != nil {
			return err
		}
		_, err := w.Write(terminal.JSON(out.Bytes()))
		return err
	}
	for _, f := range found {
		if err := terminal.WriteJSON(&out, newFindingLine(f)); err != nil {
			return err
		}
	}
	_, err := w.Write(out.Bytes())
	return err
}

// A findingLine is a finding in JSON Lines.
type findingLine struct {
	Code    string `json:"code"`
	Clause  string `json:"clause"`
	Level   string `json:"level"`
	Message string `json:"message"`
	Where   string `json:"where"`
	Hint    string `json:"hint"`
}

func newFindingLine(f check.Finding) findingLine {
	return findingLine{f.Code, f.Clause, f.Level.String(), f.Message, f.Where(), f.Hint}
}

// A fileTransport answers requests with the files of a feed's directory, as a web server
// of that directory will. A link works only if its target is a file.
type fileTransport struct {
	File string // the feed's file
	URL  string // the URL where it will be served
}

// RoundTrip implements http.RoundTripper. It answers with the file at the URL, or with
// status 404.
func (t *fileTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp := &http.Response{
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: req,
		StatusCode: http.StatusNotFound,
	}
	name, ok := t.path(req.URL)
	if !ok {
		return resp, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return resp, nil
	}
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		_ = f.Close()
		return resp, nil
	}
	resp.StatusCode, resp.Body, resp.ContentLength = http.StatusOK, f, info.Size()
	t.header(resp.Header, info)
	return resp, nil
}

// header adds the header fields a server would add, so check does not report them as
// missing.
func (t *fileTransport) header(h http.Header, info fs.FileInfo) {
	h.Set("Last-Modified", info.ModTime().UTC().Format(http.TimeFormat))
	h.Set("Cache-Control", "no-cache")
}

// path returns the file to be served at a URL.
func (t *fileTransport) path(u *url.URL) (string, bool) {
	feed, err := url.Parse(t.URL)
	if err != nil || u.Scheme != feed.Scheme || !strings.EqualFold(u.Host, feed.Host) {
		return "", false
	}
	if u.Path == feed.Path {
		return t.File, true
	}
	dir := feed.Path[:strings.LastIndexByte(feed.Path, '/')+1]
	rel, err := filepath.Rel(filepath.FromSlash("/"+dir), filepath.FromSlash("/"+u.Path))
	if err != nil {
		return "", false
	}
	return filepath.Join(filepath.Dir(t.File), rel), true
}

// Name returns the name of the file at a URL, or the URL if there is no such file.
func (t *fileTransport) Name(link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return link
	}
	name, ok := t.path(u)
	if _, err := os.Stat(name); !ok || err != nil {
		return link
	}
	return name
}
