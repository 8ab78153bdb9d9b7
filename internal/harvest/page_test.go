package harvest

import (
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

// Duties: datareplication#consumer-6.
func TestParseTime(t *testing.T) {
	want := time.Date(2023, 11, 7, 3, 10, 0, 0, time.UTC)
	for _, s := range []string{
		"Tue, 07 Nov 2023 03:10:00 GMT", "Tue, 7 Nov 2023 03:10:00 GMT", " Tue, 7 Nov 2023 03:10:00 UTC ",
		"Tuesday, 07-Nov-23 03:10:00 GMT", "Tue Nov  7 03:10:00 2023", "Tue, 7 Nov 2023 04:10:00 +0100",
		"7 Nov 2023 03:10:00 GMT", "2023-11-07T03:10:00.999Z", "2023-11-07T04:10:00+01:00", "Tue, 7 Nov 2023 05:10:00 CEST",
	} {
		got, err := ParseTime(s)
		require.NoError(t, err)
		require.Equal(t, want, got, s)
	}
	for _, s := range []string{"", "0", "yesterday", "Tue, 7 Nov 2023 03:10:00 IST", "Tue, 7 Nov 2023 03:10:00 B", "Tue, 31 Feb 2023 03:10:00 GMT"} {
		_, err := ParseTime(s)
		require.Error(t, err, s)
	}
}

// Duties: datareplication#consumer-6.
func TestBoundary(t *testing.T) {
	for s, want := range map[string]string{
		"multipart/mixed; boundary=rdm-bny":               "rdm-bny",
		"multipart/mixed; boundary=“rdm-bny”":             "rdm-bny", // as the protocol's text has it
		`multipart/mixed; boundary="a b:c"; charset=x`:    "a b:c",
		"multipart/mixed; boundary=a:b/c=d?":              "a:b/c=d?",
		"MULTIPART/Form-Data;charset=utf-8;Boundary=a@b ": "a@b",
		`multipart/mixed; boundary="a`:                    "a",
		"multipart/mixed; boundary=a:b; boundary=c:d":     "a:b",
	} {
		got, err := Boundary(s)
		require.NoError(t, err, s)
		require.Equal(t, want, got, s)
	}
	for _, s := range []string{"", "multipart/mixed", "text/html; boundary=b", "multipart/mixed; boundary=", "multipart/mixed;boundary=\"a\nb\""} {
		_, err := Boundary(s)
		require.Error(t, err, s)
	}
}

// Links are read as in feeds: relations in any case, by their registered names and as URIs
// (RFC 8288 §2.1.1), and none of another context (§3.2).
func TestLinks(t *testing.T) {
	const page = "https://example.org/feed"
	for _, test := range []struct {
		lines []string
		want  map[string]string
	}{
		{[]string{"https://example.com/feed/hash;rel=self"}, map[string]string{"self": "https://example.com/feed/hash"}},
		{[]string{"<1>; rel=self", "<2>; rel=prev", "<3>; rel=prev"}, map[string]string{"self": "https://example.org/1", "previous": "https://example.org/2"}},
		{
			[]string{`<1>; rel="self up", 2;rel=prev,<3;4,5>;title=", <x>;";rel=next`},
			map[string]string{"self": "https://example.org/1", "previous": "https://example.org/2", "next": "https://example.org/3;4,5"},
		},
		{[]string{"<1>; rel=Prev", "", ";", "nothing", "<2", "<3>", "; rel=self"}, map[string]string{"previous": "https://example.org/1", "self": page}},
		{[]string{"<1>; rel=PREV", "<2>; rel=NEXT"}, map[string]string{"previous": "https://example.org/1", "next": "https://example.org/2"}},
		{[]string{`<1>; rel="http://www.iana.org/assignments/relation/previous"`}, map[string]string{"previous": "https://example.org/1"}},
		{[]string{`<1>; rel=prev; anchor="https://example.org/album"`, "<2>; rel=prev"}, map[string]string{"previous": "https://example.org/2"}},
		{[]string{`<1>; rel=prev; anchor="#top"`}, map[string]string{"previous": "https://example.org/1"}},
	} {
		require.Equal(t, test.want, Links(http.Header{"Link": test.lines}, page), "%q", test.lines)
	}
}

// Duties: datareplication#feed-4.
func TestOperation(t *testing.T) {
	for s, want := range map[string]string{
		"http-equiv=PUT": "PUT", "DELETE": "DELETE", "patch": "PATCH", `HTTP-Equiv = "put"`: "PUT", "": "", "http-equiv=MERGE": "MERGE",
	} {
		require.Equal(t, want, Operation(textproto.MIMEHeader{FieldOperation: {s}}), s)
	}
}

// These bodies make it hard to tell where a body ends: hyphens, the beginning
// of the boundary, empty bodies, blanks after a delimiter.
var bodies = []string{"one", "", "--", "\r\n--", "\r\n--b-", "\r\n--boundary2\r\n", "--boundary", "\r\n\r\n", "x\r\n-", "last--"}

func multipartOf(nl, blanks, ending string) string {
	var b strings.Builder
	for i, body := range bodies {
		if body == "--boundary" {
			body = "x--boundary"
		}
		if nl == "\n" {
			body = strings.ReplaceAll(body, "\r", "")
		}
		fmt.Fprintf(&b, "--boundary%s%sContent-ID: %d--%s%s%s%s", blanks, nl, i, nl, nl, body, nl)
	}
	return b.String() + "--boundary--" + ending
}

// TestEveryCut cuts a body off after each byte. The parts that come are whole,
// and the end counts only if it is proved.
func TestEveryCut(t *testing.T) {
	for _, text := range []string{multipartOf("\r\n", "", "\r\n"), multipartOf("\r\n", " \t", "  "), multipartOf("\n", "", ""), multipartOf("\r\n", "", "\r\nepilogue")} {
		whole, err := read(strings.NewReader(text), 100)
		require.Equal(t, io.EOF, err)
		require.Len(t, whole, len(bodies))
		end := strings.LastIndex(text, "--boundary--") + len("--boundary--")
		for n := range len(text) {
			for _, r := range []io.Reader{strings.NewReader(text[:n]), iotest.OneByteReader(strings.NewReader(text[:n])), iotest.DataErrReader(strings.NewReader(text[:n]))} {
				got, err := read(r, 100)
				require.Equal(t, whole[:len(got)], got, "%q", text[:n])
				if n < end {
					require.Equal(t, io.ErrUnexpectedEOF, err, "%q", text[:n])
				} else {
					require.Len(t, got, len(whole))
				}
			}
		}
	}
}

func read(r io.Reader, most int64) (got []string, err error) {
	p, got := NewParts(r, "boundary", most), []string{}
	for {
		part, err := p.Next()
		if err != nil {
			return got, err
		}
		got = append(got, part.Header.Get(FieldID)+" "+string(part.Body))
	}
}

func TestPartsErrors(t *testing.T) {
	for text, want := range map[string]string{
		"":                    "unexpected EOF",
		"nothing of the kind": "unexpected EOF",
		"--boundary\r\nno\r\n\r\n--boundary--\r\n":                              "malformed MIME header",
		"--boundary\r\n\r\n" + strings.Repeat("x", 11) + "\r\n--boundary--\r\n": ErrTooLarge.Error(),
	} {
		_, err := read(strings.NewReader(text), 10)
		require.ErrorContains(t, err, want, "%q", text)
	}
	got, err := read(iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader(multipartOf("\r\n", "", "")))), 10)
	require.ErrorIs(t, err, iotest.ErrTimeout)
	require.Empty(t, got)
	got, err = read(strings.NewReader("--boundary--"), 10) // no entities
	require.Equal(t, io.EOF, err)
	require.Empty(t, got)
}

// FuzzParts checks that reading any body ends, and that the parts of a cut body
// are parts of the whole.
func FuzzParts(f *testing.F) {
	f.Add(multipartOf("\r\n", "", "\r\n"), 40)
	f.Add(multipartOf("\n", " ", ""), 99)
	f.Add("preamble\r\n--boundary\r\n\r\n\r\n--boundary--", 20)
	f.Fuzz(func(t *testing.T, text string, cut int) {
		whole, _ := read(strings.NewReader(text), 1000)
		if cut < 0 || cut > len(text) {
			return
		}
		got, err := read(strings.NewReader(text[:cut]), 1000)
		require.Error(t, err)
		require.LessOrEqual(t, len(got), len(whole))
		require.Equal(t, whole[:len(got)], got)
	})
}

// FuzzHeader checks that reading any header ends, and that a value written as
// it was read is read the same again.
func FuzzHeader(f *testing.F) {
	f.Add("multipart/mixed; boundary=“rdm-bny”", "https://example.com/feed/hash;rel=self, <x>; rel=\"next up\"", "Mon, 7 Nov 2023 03:10:00 GMT")
	f.Add("multipart/mixed; boundary=a:b; x", "<a,b;c>;rel=prev;title=\"\\\"\"", "2023-11-07T03:10:00Z")
	f.Fuzz(func(t *testing.T, kind, link, stamp string) {
		if b, err := Boundary(kind); err == nil {
			require.NotEmpty(t, b)
			require.NotContains(t, b, "\n")
		}
		for rel, target := range Links(map[string][]string{FieldLink: {link}}, "https://example.org/") {
			if strings.ContainsAny(rel+target, "<>\"\\,; \t") {
				continue
			}
			again := Links(map[string][]string{FieldLink: {"<" + target + ">; rel=" + rel}}, "https://example.org/")
			require.Equal(t, map[string]string{rel: target}, again)
		}
		if at, err := ParseTime(stamp); err == nil {
			require.Zero(t, at.Nanosecond())
		}
	})
}
