//go:build unix

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/check"
	"github.com/feedhistory/feedhistory/cmd/internal/collection"
	"github.com/feedhistory/feedhistory/cmd/internal/command"
	"github.com/feedhistory/feedhistory/cmd/internal/database"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/cmd/internal/explain"
	"github.com/feedhistory/feedhistory/cmd/internal/findings"
	"github.com/feedhistory/feedhistory/cmd/internal/markdown"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/harvest/datareplication"
	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

// certificate makes a certificate that signs itself.
func certificate(t *testing.T, edit func(*x509.Certificate)) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	now := time.Now()
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Test authority"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: now.Add(-48 * time.Hour), NotAfter: now.Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	edit(c)
	der, err := x509.CreateCertificate(rand.Reader, c, c, &key.PublicKey, key)
	require.NoError(t, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// A message says what is wrong with a server's TLS, and what to do.
func TestTLSMessages(t *testing.T) {
	now := time.Now()
	same := func(*x509.Certificate) {}
	for _, test := range []struct {
		name    string
		edit    func(*x509.Certificate)
		version uint16 // of TLS, at most
		trusted bool
		want    string
	}{
		{"unknown authority", same, 0, false, "its certificate comes from an authority that this computer does not know: Test authority; if you trust the authority, give its certificate with --ca-file"},
		{"expired", func(c *x509.Certificate) { c.NotAfter = now.Add(-24 * time.Hour) }, 0, true, "its certificate has expired; tell the publisher, and check this computer's clock"},
		{"early", func(c *x509.Certificate) { c.NotBefore = now.Add(24 * time.Hour) }, 0, true, "its certificate is not valid yet; check this computer's clock"},
		{"another host", func(c *x509.Certificate) { c.IPAddresses, c.DNSNames = nil, []string{"example.org"} }, 0, true, "its certificate is for another host: example.org; check the address"},
		{"no host", func(c *x509.Certificate) { c.IPAddresses = nil }, 0, true, "its certificate is for another host; check the address"},
		{"for clients", func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} }, 0, true, "its certificate cannot be verified: "},
		{"old", same, tls.VersionTLS11, true, "the server refuses the TLS connection: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.Config.ErrorLog = log.New(io.Discard, "", 0)
			own := certificate(t, test.edit)
			server.TLS = &tls.Config{Certificates: []tls.Certificate{own}, MinVersion: tls.VersionTLS10, MaxVersion: test.version}
			server.StartTLS()
			defer server.Close()
			args := []string{"fetch", "--allow-private", server.URL + "/feed.atom"}
			if test.trusted {
				ca := filepath.Join(t.TempDir(), "ca.pem")
				require.NoError(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: own.Certificate[0]}), 0o600))
				args = append(args, "--ca-file", ca)
			}
			status, stdout, stderr := call(t.Context(), "", args...)
			require.Equal(t, exit.Failed, status)
			require.Empty(t, stdout)
			require.Contains(t, said(stderr), server.URL+"/feed.atom: "+test.want)
			require.Equal(t, 1, strings.Count(stderr, server.URL), stderr)
		})
	}
}

// A document of more than 16 MiB is refused by the default limit, which is named with
// the flag that raises it.
func TestLargeDocumentMessage(t *testing.T) {
	server := feedtest.Server(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `<feed xmlns="http://www.w3.org/2005/Atom"><title>`)
		block := strings.Repeat("large ", 1<<14)
		for range 200 {
			if _, err := io.WriteString(w, block); err != nil {
				return
			}
		}
		fmt.Fprint(w, `</title><entry><id>urn:1</id></entry></feed>`)
	}))
	status, _, stderr := call(t.Context(), "", "fetch", "--allow-private", server.URL)
	require.Equal(t, exit.Failed, status)
	require.Contains(t, said(stderr), server.URL+": the document is larger than 16 MiB; raise --max-document-bytes if you trust the publisher")
	status, stdout, stderr := call(t.Context(), "", "fetch", "--allow-private", "--max-document-bytes", "20MiB", server.URL)
	require.Equal(t, exit.OK, status, stderr)
	require.Contains(t, stdout, "urn:1")
}

// A message about wrong usage names the flag, and says where to read more.
func TestUsageMessages(t *testing.T) {
	const url = "https://example.org/"
	for _, test := range []struct{ args, says string }{
		{"check --chain --base https://example.org/ -", "--chain: standard input"},
		{"conformance publisher --add true --settle 0s " + url, "--settle: "},
		{"conformance run --timeout 0s -- true", "--timeout: "},
		{"erase --name feed.atom urn:1", "--name is for --out"},
		{"fetch --json --format csv " + url, "--json and --format csv exclude each other"},
		{"fetch --format atom " + url + " " + url + "2", "--format atom: give one URL, because it is one feed"},
		{"harvest --protocol atom-pmh --format json --json " + url, "--format json excludes --json and --db"},
		{"harvest --protocol atom-pmh --format json --db x.db " + url, "--format json excludes --json and --db"},
		{"handover --to https://reader.example/", "you can create one in Miniflux at"},
	} {
		t.Setenv("MINIFLUX_TOKEN", "")
		args := strings.Fields(test.args)
		status, _, stderr := call(t.Context(), "", args...)
		require.Equal(t, exit.Usage, status, "%s: %s", test.args, stderr)
		require.Contains(t, said(stderr), test.says)
		require.Contains(t, stderr, "feedhistory: see feedhistory "+args[0])
	}
}

// A message names a file of settings that cannot be read.
func TestConfigMessages(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"pace = ":                  "config.toml:1: ",
		"pace = \"soon\"":          "--pace: ",
		"[fetch]\nquota = \"1GB\"": "config.toml: there is no flag quota",
		"[nothing]\n":              "config.toml: there is no verb nothing",
		"user = \"ann\"":           "config.toml: user is for the command line only",
	} {
		file := filepath.Join(dir, "config.toml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		t.Setenv("FEEDHISTORY_CONFIG", file)
		status, _, stderr := call(t.Context(), "", "fetch", "https://example.org/")
		require.Equal(t, exit.Usage, status, "%s: %s", text, stderr)
		require.Contains(t, stderr, want, text)
	}
	t.Setenv("FEEDHISTORY_CONFIG", dir)
	status, _, stderr := call(t.Context(), "", "list")
	require.Equal(t, exit.Usage, status)
	require.Contains(t, stderr, dir+": is a directory")
}

// A message about a bad line of input names the line, or what the line is about.
func TestLineMessages(t *testing.T) {
	produce := []string{"produce", "--base", "https://example.org/", "--listen", "127.0.0.1:0", "--protocol"}
	for _, test := range []struct{ protocol, lines, says string }{
		{collection.AtomPMH, `{"id":"urn:1","time":"yesterday"}`, `the record "urn:1": time is not a time such as 2003-12-13T18:30:02Z: "yesterday"`},
		{collection.AtomPMH, produced[collection.AtomPMH] + "\n{", "line 2: "},
		{collection.ModifiedRange, `{"id":"urn:1","deleted":true}`, `the deletion of "urn:1" has no time`},
		{collection.DataReplication, "\n\nx", "line 3: "},
	} {
		status, _, stderr := call(t.Context(), test.lines, append(produce, test.protocol)...)
		require.Equal(t, exit.Failed, status, stderr)
		require.Contains(t, said(stderr), test.says)
	}
	site := &markdown.Site{Base: "https://example.org/", Zone: time.UTC}
	_, err := site.Address(markdown.FrontMatter{"url": "/%zz/"}, markdown.ArticlePlace{})
	require.EqualError(t, err, "its address is not a URL: /%zz/")
	_, err = site.Expand("/{year}/{slug}/", markdown.ArticlePlace{Slug: "x"})
	require.EqualError(t, err, "it has no date, and its address contains one: /{year}/{slug}/")
}

// Advice says what to do about rare errors.
func TestAdviceMessages(t *testing.T) {
	for want, err := range map[string]error{
		"the proxy requires a user and a password": &feedhistory.StatusError{URL: "x", Status: http.StatusProxyAuthRequired},
	} {
		require.Contains(t, explain.Remedy(err), want)
	}
	for want, err := range map[string]error{
		"remove content_id from the state: then the harvest continues by time": &datareplication.NotFoundError{},
		"tell the server's operator": &datareplication.LoopError{},
		"raise --max-entity":         &datareplication.BudgetError{Limit: "bytes"},
	} {
		require.Equal(t, want, collection.ReplicationAdvice(err))
	}
	require.Equal(t, "tell the server's operator that it sends the same items for every end of the range",
		collection.HarvestAdvice(&feedhistory.Gap{Err: &modifiedrange.PossibleLossError{Stuck: true}}))
	require.Equal(t, "tell the publisher", explain.Advice(&feedhistory.Gap{
		Reason: feedhistory.ReasonRefused, Err: &feedhistory.RefusedError{URL: "javascript:x", Rule: feedhistory.RuleScheme}}))
	require.Contains(t, explain.Advice(&feedhistory.Gap{
		Reason: feedhistory.ReasonRefused, Err: &feedhistory.RefusedError{URL: "x", Rule: feedhistory.RuleAddress}}), "(--allow-private)")
	require.Contains(t, explain.Advice(&feedhistory.Gap{
		Reason: feedhistory.ReasonStatus, Err: &feedhistory.StatusError{URL: "x", Status: http.StatusUnauthorized}}), "check --user")
	require.Contains(t, explain.VerdictText(feedhistory.Lossy), "entries may have slipped through")
	var out strings.Builder
	findings.Show(terminal.NewPage(&out), []check.Finding{{}}, 1)
	require.Contains(t, out.String(), "(a document without a URL)")
}

// TestHarvestFlagNames checks that each flag the messages of harvest and produce name is one
// of these verbs, and that the advice for any gap names flags harvest has.
func TestHarvestFlagNames(t *testing.T) {
	parser, err := kong.New(&commandLine{}, kong.Vars{"version": "", "agent": "", "db": ""})
	require.NoError(t, err)
	flags := map[string]map[string]bool{}
	for _, verb := range parser.Model.Children {
		if flags[verb.Name] = map[string]bool{}; verb.Name != "harvest" && verb.Name != "produce" {
			continue
		}
		for _, group := range verb.AllFlags(false) {
			for _, f := range group {
				for _, name := range append(slices.Clone(f.Aliases), f.Name) {
					flags[verb.Name][name] = true
				}
			}
		}
	}
	flag := regexp.MustCompile(`--([a-z][a-z-]*[a-z])(?:[^a-z-]|$)`) // not "--max-", which is completed below
	files := []string{"harvest.go", "produce.go"}
	more, err := filepath.Glob("../internal/collection/*.go")
	require.NoError(t, err)
	require.NotEmpty(t, more)
	seen := 0
	for _, file := range append(files, more...) {
		for _, m := range flag.FindAllStringSubmatch(string(feedtest.ReadFile(t, file)), -1) {
			seen++
			require.True(t, flags["harvest"][m[1]] || flags["produce"][m[1]], "%s names --%s", file, m[1])
		}
	}
	require.Greater(t, seen, 30)
	for reason := range feedhistory.Reason(64) {
		for _, status := range []int{401, 404, 407, 429, 500} {
			for _, rule := range []string{"scheme", "address"} {
				for _, err := range []error{
					&feedhistory.StatusError{URL: "x", Status: status}, &feedhistory.RefusedError{URL: "x", Rule: rule},
					&feedhistory.ParseError{Reason: reason}, &modifiedrange.BudgetError{Limit: "items"}, &modifiedrange.BudgetError{Limit: "requests"},
					&modifiedrange.BudgetError{Limit: "bytes"}, &modifiedrange.IgnoredError{}, &modifiedrange.StampError{}, errors.New("x"),
				} {
					advice := collection.HarvestAdvice(&feedhistory.Gap{Reason: reason, Err: err})
					for _, m := range flag.FindAllStringSubmatch(advice, -1) {
						require.True(t, flags["harvest"][m[1]], "%v, %v: %s", reason, err, advice)
					}
				}
			}
		}
	}
}

// An entry that several feeds have needs a feed; a mirror that changes while it is
// exported is not exported.
func TestSeveralFeedsMessages(t *testing.T) {
	dir, url := serveDirectory(t)
	db := filepath.Join(dir, "feeds.db")
	for _, name := range []string{"a.rss", "b.rss"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(`<rss version="2.0"><channel><title>T</title><item><guid>urn:1</guid></item></channel></rss>`), 0o600))
		done(t, "", "sync", "--db", db, "--allow-private", url+"/"+name)
	}
	for _, verb := range []string{"entry", "erase"} {
		status, _, stderr := call(t.Context(), "", verb, "--db", db, "urn:1")
		require.Equal(t, exit.Usage, status)
		require.Contains(t, said(stderr), "several feeds have ")
		require.Contains(t, said(stderr), "--feed: "+url+"/a.rss")
		require.Contains(t, said(stderr), url+"/b.rss")
	}
	store, err := (&database.Location{DB: db}).Open(&command.World{Ctx: t.Context()})
	require.NoError(t, err)
	defer store.Close()
	f, err := store.Feed(t.Context(), url+"/a.rss")
	require.NoError(t, err)
	require.NoError(t, store.Commit(t.Context(), &mirror.Commit{Feed: f}))
	old, err := store.Feed(t.Context(), url+"/a.rss")
	require.NoError(t, err)
	old.Commits--
	require.ErrorContains(t, (&mirror.Export{Store: store}).Feeds(t.Context(), io.Discard, func(yield func(*mirror.Feed, error) bool) { yield(old, nil) }), "the feed has changed meanwhile")
}

// The message about a database that fails in the middle of an import does not blame a
// line.
func TestImportDatabaseMessage(t *testing.T) {
	c := &importCommand{Location: database.Location{DB: "feeds.db"}}
	err := c.importFailure("-", &mirror.LineError{Line: 7, Err: database.ErrDirectory})
	require.EqualError(t, err, "feeds.db: the file cannot be opened: it is a directory; run the same import again to continue")
	err = c.importFailure("-", &mirror.LineError{Line: 7, Err: errors.New("odd")})
	require.EqualError(t, err, "standard input: line 7: odd")
}
