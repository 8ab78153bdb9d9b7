package command

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"golang.org/x/net/http/httpproxy"
)

// NetworkFlags are the flags of the verbs that make requests.
type NetworkFlags struct {
	AllowPrivate     bool          `help:"Allow requests to loopback and private addresses."`
	UserAgent        string        `placeholder:"NAME" help:"User-Agent to send to servers (default: ${agent})."`
	Pace             time.Duration `default:"0s" least:"0s" placeholder:"TIME" help:"Minimum time between requests to one host, such as 500ms."`
	NoGuess          bool          `help:"Request no archive before a link names it, even if its address can be told."`
	MaxEntries       int           `default:"50000" least:"1" placeholder:"N" help:"Maximum number of entries of one document (default: ${default})."`
	MaxDocumentBytes terminal.Size `default:"16MiB" least:"1" placeholder:"SIZE" help:"Maximum size of one document, decompressed (default: ${default})."`
	Proxy            string        `placeholder:"URL" help:"Proxy for all requests: http://, https:// or socks5://; \"none\" uses no proxy, even if HTTPS_PROXY or HTTP_PROXY names one."`
	CAFile           string        `name:"ca-file" placeholder:"FILE" help:"Also trust the certificate authorities in a PEM file."`
	Verbose          bool          `short:"v" help:"Log each request on standard error."`

	traffic *Traffic
	proxy   proxyFunc      // nil means no proxy
	proxies []*url.URL     // the proxies named by the flag or the environment
	roots   *x509.CertPool // nil means the system's
}

// Traffic returns the requests of the clients so far; only a terminal, without --verbose,
// has it.
func (f *NetworkFlags) Traffic() *Traffic {
	if f.traffic == nil {
		f.traffic = new(Traffic)
	}
	return f.traffic
}

// Network returns f: a verb with this method makes requests.
func (f *NetworkFlags) Network() *NetworkFlags { return f }

// Prepare reads the files and the environment named by the flags, and refuses proxies and
// authorities no client can use.
func (f *NetworkFlags) Prepare() (err error) {
	if f.proxy, err = f.proxyFunc(); err == nil {
		f.roots, err = f.readRoots()
	}
	return err
}

// Transport returns a transport for requests other than a Client's, to any address.
func (f *NetworkFlags) Transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy, t.TLSClientConfig, t.DisableCompression = f.proxy, &tls.Config{RootCAs: f.roots}, true
	return t
}

// A proxyFunc returns the proxy for a request; nil means no proxy.
type proxyFunc func(*http.Request) (*url.URL, error)

// proxyFunc returns a function for the proxy named by the flag, else for those of the
// environment; nil if there is no proxy.
func (f *NetworkFlags) proxyFunc() (proxyFunc, error) {
	switch f.Proxy {
	case "none":
		return nil, nil
	case "":
		config := httpproxy.FromEnvironment()
		for name, proxy := range map[string]string{"HTTPS_PROXY": config.HTTPSProxy, "HTTP_PROXY": config.HTTPProxy} {
			if proxy == "" {
				continue
			}
			if !terminal.IsURL(proxy) {
				proxy = "http://" + proxy // as other programs do
			}
			if _, err := f.addProxy(name, proxy); err != nil {
				return nil, err
			}
		}
		if len(f.proxies) == 0 {
			return nil, nil
		}
		choose := config.ProxyFunc()
		return func(r *http.Request) (*url.URL, error) { return choose(r.URL) }, nil
	}
	u, err := f.addProxy("--proxy", f.Proxy)
	if err != nil {
		return nil, err
	}
	return http.ProxyURL(u), nil
}

// addProxy parses the URL of a proxy and adds it to the proxies. Errors call it name.
func (f *NetworkFlags) addProxy(name, proxy string) (*url.URL, error) {
	u, err := url.Parse(proxy)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, u.Scheme) {
		return nil, terminal.UsageError(name + ": the URL of a proxy begins with http://, https:// or socks5://") // the message does not quote the URL: it may have a password
	}
	f.proxies = append(f.proxies, u)
	return u, nil
}

// readRoots returns the certificate authorities to trust; nil means the system's.
func (f *NetworkFlags) readRoots() (*x509.CertPool, error) {
	if f.CAFile == "" {
		return nil, nil
	}
	pem, err := os.ReadFile(f.CAFile)
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, terminal.UsageError("--ca-file: " + f.CAFile + ": " + path.Err.Error())
	}
	if err != nil {
		return nil, err
	}
	roots, err := x509.SystemCertPool()
	if err != nil {
		roots = x509.NewCertPool()
	}
	if !roots.AppendCertsFromPEM(pem) {
		return nil, terminal.UsageError("--ca-file: " + f.CAFile + ": there is no certificate in it")
	}
	return roots, nil
}

var addressInText = regexp.MustCompile(`https?://[^\s"\\]+`)

// Log returns the log of --verbose; nil without that flag.
func (f *NetworkFlags) Log(stderr io.Writer) *slog.Logger {
	if !f.Verbose {
		return nil
	}
	return slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if text := a.Value.String(); strings.Contains(text, "://") { // an error has its address within
			a.Value = slog.StringValue(addressInText.ReplaceAllStringFunc(text, show.Address))
		}
		return a
	}}))
}

// Client returns the Client the flags ask for.
func (f *NetworkFlags) Client(stderr io.Writer) *feedhistory.Client {
	c := &feedhistory.Client{
		UserAgent: f.UserAgent, Pace: f.Pace, AllowPrivate: f.AllowPrivate, NoGuess: f.NoGuess,
		Proxy: f.proxy, RootCAs: f.roots,
		MaxBytes: int64(f.MaxDocumentBytes), MaxEntries: f.MaxEntries,
	}
	if !f.Verbose && terminal.IsTerminal(stderr) {
		c.Logger = slog.New(f.Traffic())
	}
	if c.Logger = cmp.Or(f.Log(stderr), c.Logger); f.Verbose {
		message := "requests go through a proxy"
		if f.Proxy == "" { // the environment may exclude addresses from the proxy
			message = "the environment names a proxy"
		}
		for _, proxy := range f.proxies {
			c.Logger.Info(message, "proxy", terminal.WithoutUser(proxy.String()))
		}
	}
	return c
}

// A Traffic is a slog.Handler for following the requests of clients, for a terminal.
// Its zero value has seen none.
type Traffic struct {
	answers atomic.Int64

	mu      sync.Mutex
	flights map[string]flight // by URL
}

// A flight is a request without a complete answer.
type flight struct {
	began time.Time
	head  bool   // the answer has no body
	first string // the URL asked of the client, if redirects led elsewhere
}

// patience is how long a host may take before Waiting names it.
const patience = 2 * time.Second

// Answers returns the number of answers so far.
func (t *Traffic) Answers() int { return int(t.answers.Load()) }

// Waiting returns the host with the longest waiting request; "" if none has for two
// seconds.
func (t *Traffic) Waiting() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	oldest, host := time.Now().Add(-patience), ""
	for url, f := range t.flights {
		if f.began.Before(oldest) {
			oldest, host = f.began, feedhistory.HostOf(url)
		}
	}
	return host
}

// Enabled implements slog.Handler.
func (t *Traffic) Enabled(context.Context, slog.Level) bool { return true }

// WithAttrs implements slog.Handler.
func (t *Traffic) WithAttrs([]slog.Attr) slog.Handler { return t }

// WithGroup implements slog.Handler.
func (t *Traffic) WithGroup(string) slog.Handler { return t }

// Handle implements slog.Handler.
func (t *Traffic) Handle(_ context.Context, r slog.Record) error {
	attrs := map[string]string{}
	r.Attrs(func(a slog.Attr) bool {
		attrs[a.Key] = a.Value.String()
		return true
	})
	t.mu.Lock()
	defer t.mu.Unlock()
	url := attrs["url"]
	switch r.Message {
	case "request":
		if t.flights == nil {
			t.flights = map[string]flight{}
		}
		t.flights[url] = flight{began: time.Now(), head: attrs["method"] == http.MethodHead, first: t.flights[url].first}
	case "answer":
		t.answers.Add(1)
		if f, ok := t.flights[url]; ok && (f.head || attrs["status"] == "304") {
			delete(t.flights, url)
		} else if ok {
			f.began = time.Now() // its body may take as long again
			t.flights[url] = f
		}
	case "body", "retry":
		delete(t.flights, url)
	case "redirect":
		first := url
		if f := t.flights[url]; f.first != "" {
			first = f.first
		}
		delete(t.flights, url)
		t.flights[attrs["to"]] = flight{began: time.Now(), first: first}
	case "failure", "refusal":
		for to, f := range t.flights {
			if to == url || f.first == url {
				delete(t.flights, to)
			}
		}
	}
	return nil
}
