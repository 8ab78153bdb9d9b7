package replication

import (
	"net/http"
	"net/textproto"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Duties: datareplication#consumer-6.
func TestParseTime(t *testing.T) {
	want := time.Date(2023, 11, 7, 3, 10, 0, 0, time.UTC)
	for _, s := range []string{
		"Tue, 07 Nov 2023 03:10:00 GMT", "Tue, 7 Nov 2023 03:10:00 GMT", " Tue, 7 Nov 2023 03:10:00 UTC ",
		"Tuesday, 07-Nov-23 03:10:00 GMT", "Tue Nov  7 03:10:00 2023", "Tue, 7 Nov 2023 04:10:00 +0100",
		"7 Nov 2023 03:10:00 GMT", "2023-11-07T03:10:00.999Z", "2023-11-07T04:10:00+01:00",
	} {
		got, err := ParseTime(s)
		require.NoError(t, err)
		require.Equal(t, want, got, s)
	}
	for _, s := range []string{"", "0", "yesterday", "Tue, 7 Nov 2023 03:10:00 CEST", "Tue, 31 Feb 2023 03:10:00 GMT"} {
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

func TestLinks(t *testing.T) {
	for _, test := range []struct {
		lines []string
		want  map[string]string
	}{
		{[]string{"https://example.com/feed/hash;rel=self"}, map[string]string{"self": "https://example.com/feed/hash"}},
		{[]string{"<1>; rel=self", "<2>; rel=prev", "<3>; rel=prev"}, map[string]string{"self": "1", "prev": "2"}},
		{[]string{`<1>; rel="self up", 2;rel=prev,<3;4,5>;title=", <x>;";rel=next`}, map[string]string{"self": "1", "up": "1", "prev": "2", "next": "3;4,5"}},
		{[]string{"<1>; rel=Prev", "", ";", "nothing", "<2", "<3>", "; rel=self"}, map[string]string{"Prev": "1", "self": ""}},
	} {
		require.Equal(t, test.want, Links(http.Header{"Link": test.lines}), "%q", test.lines)
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
