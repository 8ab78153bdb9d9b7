package terminal

import (
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/stretchr/testify/require"
)

// Only a host that others may know is worth asking them about.
func TestIsPublicHost(t *testing.T) {
	for host, want := range map[string]bool{
		"feed.example": true, "EXAMPLE.org.": true, "example.org:8080": true, "192.0.2.1": true, "[2001:db8::1]:80": true,
		"127.0.0.1": false, "127.0.0.1:80": false, "10.1.2.3": false, "[::1]": false, "169.254.1.1": false,
		"localhost": false, "nas": false, "nas.local": false, "db.internal": false, "a.localhost": false,
	} {
		require.Equal(t, want, IsPublicHost("http://"+host+"/feed"), host)
	}
}

func TestParseMoment(t *testing.T) {
	now := time.Date(2004, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"2003-12-13": "2003-12-13T00:00:00Z", "2003-12-13T18:30:02.25+01:00": "2003-12-13T17:30:02.25Z",
		"7d": "2004-02-23T12:00:00Z", "2w": "2004-02-16T12:00:00Z", "48h": "2004-02-28T12:00:00Z",
		"10y": "1994-03-01T12:00:00Z", "3mo": "2003-12-01T12:00:00Z", "today": "2004-03-01T00:00:00Z", "Yesterday": "2004-02-29T00:00:00Z",
		"90m": "2004-03-01T10:30:00Z", "1h30m": "2004-03-01T10:30:00Z", " 0d ": "2004-03-01T12:00:00Z",
	} {
		got, err := parseMoment(text, now)
		require.NoError(t, err, text)
		require.Equal(t, want, got.UTC().Format(time.RFC3339Nano), text)
	}
	for _, text := range []string{"", "tomorrow", "2003-13-01", "-1d", "-48h", "d", "1.5d", "7", "99999d", "18:30"} {
		_, err := parseMoment(text, now)
		require.ErrorContains(t, err, "is not a time such as", text)
	}
}

func TestSameSite(t *testing.T) {
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{"https://example.org/feed.xml", "http://example.org/history/", true},
		{"https://www.Example.org./feed.xml", "https://feeds.example.org/", true},
		{"https://example.org:8443/", "https://feeds.example.org/", true},
		{"https://example.org/", "https://example.com/", false},
		{"https://a.example.co.uk/", "https://b.example.co.uk/", true},
		{"https://one.co.uk/", "https://two.co.uk/", false},
		{"https://ann.github.io/feed.xml", "https://bob.github.io/", false}, // each has an owner
		{"https://ann.github.io/feed.xml", "https://ann.github.io/history/", true},
		{"http://127.0.0.1:4000/", "http://127.0.0.1:4000/history/", true},
		{"http://127.0.0.1:4000/", "http://127.0.0.1:5000/", false},
		{"http://10.0.0.1/", "http://192.168.0.1/", false},
		{"http://[::1]/feed", "http://[::1]/", true},
		{"http://localhost:4000/", "http://localhost:5000/", false},
		{"https://github.io/", "https://github.io/x", true},
		{"https://bücher.example/", "https://www.bücher.example/", true},
		{"://", "https://example.org/", false},
	} {
		require.Equal(t, test.same, SiteName(test.a) == SiteName(test.b), "%s and %s", test.a, test.b)
	}
}

func TestParseSize(t *testing.T) {
	for text, want := range map[string]Size{
		"0": 0, "500": 500, "500B": 500, "10MB": 10_000_000, "10mb": 10_000_000, "10M": 10_000_000,
		"10 MB": 10_000_000, "1kB": 1000, "1KiB": 1024, "1.5GiB": 3 << 29, "2G": 2_000_000_000, "1TiB": 1 << 40,
	} {
		var got Size
		if err := got.UnmarshalText([]byte(text)); err != nil || got != want {
			t.Errorf("%q: %d, %v; want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"", "MB", "10X", "-1", "1e30TB", "10MBB", "NaN", "Inf", "0x10", "1 0"} {
		var got Size
		if err := got.UnmarshalText([]byte(text)); err == nil {
			t.Errorf("%q: %d, want an error", text, got)
		}
	}
}

func TestIsURL(t *testing.T) {
	for arg, want := range map[string]bool{
		"http://example.org/": true, "HTTPS://example.org": true, "ftp://x": true,
		"feed.atom": false, "./a://b": false, "-": false, "C:\\feed.atom": false, "": false, "://x": false,
	} {
		if got := IsURL(arg); got != want {
			t.Errorf("isURL(%q) = %v", arg, got)
		}
	}
}

// A value below the least of its flag is refused, in words for its kind.
func TestLeast(t *testing.T) {
	for args, want := range map[string]string{
		"":                     "",
		"--number=0 --wait=0s": "",
		"--number=-1":          "--number: a number cannot be negative",
		"--wait=-1s":           "--wait: a time cannot be negative",
		"--parts=0":            "--parts: at least 1",
		"--size=0":             "--size: at least 1",
		"--every=999ms":        "--every: at least 1s",
		"--patience=0s":        "--patience: more than 0s",
		"--patience=1ns":       "",
	} {
		var line struct {
			Number   int           `least:"0"`
			Wait     time.Duration `least:"0s"`
			Parts    int64         `least:"1" default:"1"`
			Size     Size          `least:"1" default:"1kB"`
			Every    time.Duration `least:"1s" default:"1h"`
			Patience time.Duration `above:"0s" default:"1s"`
			Free     int
		}
		parser, err := kong.New(&line)
		require.NoError(t, err)
		call, err := parser.Parse(strings.Fields(args))
		require.NoError(t, err)
		if err := CheckLeast(call); want == "" {
			require.NoError(t, err, args)
		} else {
			require.EqualError(t, err, want)
		}
	}
}
