package replication

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

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
		for rel, target := range Links(map[string][]string{FieldLink: {link}}) {
			if strings.ContainsAny(rel+target, "<>\"\\,; \t") {
				continue
			}
			again := Links(map[string][]string{FieldLink: {"<" + target + ">; rel=" + rel}})
			require.Equal(t, map[string]string{rel: target}, again)
		}
		if at, err := ParseTime(stamp); err == nil {
			require.Zero(t, at.Nanosecond())
		}
	})
}
