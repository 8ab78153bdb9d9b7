package terminal

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "0s", 0: "0s", 59 * time.Second: "59s", time.Minute: "1m", 59 * time.Minute: "59m",
		time.Hour: "1h", 2*time.Hour - time.Second: "2h", 40 * time.Minute: "40m", 59*time.Minute + 40*time.Second: "1h",
		23*time.Hour + 50*time.Minute: "1d", 47 * time.Hour: "2d", 364*24*time.Hour + 20*time.Hour: "1y", 400 * 24 * time.Hour: "1y",
	} {
		require.Equal(t, want, Span(d), d)
	}
}

// A paragraph fills its lines; a word that is too long stays whole, and nothing in it
// drives a terminal.
func TestPage(t *testing.T) {
	var out strings.Builder
	p := &Page{W: &out}
	p.Para("  - ", "    ", strings.Repeat("word ", 16)+"https://example.org/"+strings.Repeat("x", 80)+" \x1b[31mend")
	p.Field("label", "value")
	p.Field("label", "")
	p.Line("trailing  ")
	require.Equal(t, "  - "+strings.TrimSpace(strings.Repeat("word ", 15))+"\n    word\n    https://example.org/"+strings.Repeat("x", 80)+
		"\n    �[31mend\n  label     value\ntrailing\n", out.String())

	out.Reset()
	wide := &Page{W: &out}
	wide.Para("", "", strings.Repeat("文字 ", 17))
	require.Equal(t, strings.TrimSpace(strings.Repeat("文字 ", 16))+"\n文字\n", out.String())
}

// A table made for a wide terminal becomes paragraphs on a narrow one, and stays as it is
// on others and in a pipe.
func TestText(t *testing.T) {
	const table = "level      cases   not reported\nentries    0/1     0\n\n  a sentence which is long enough\n"
	for width, want := range map[int]string{
		0: table, 80: table,
		24: "entries: cases 0/1 · not\n  reported 0\n\n  a sentence which is\n  long enough\n",
	} {
		var out strings.Builder
		p := &Page{W: &out, Width: width}
		p.Text(table)
		require.NoError(t, p.Err)
		require.Equal(t, want, out.String(), width)
	}
}

type fullDisk struct{ writes int }

func (d *fullDisk) Write([]byte) (int, error) { d.writes++; return 0, errors.New("no space left") }

// Nothing is written after an error, which is kept.
func TestPageError(t *testing.T) {
	disk := &fullDisk{}
	p := &Page{W: disk}
	p.Line("one")
	p.Para("", "", "two")
	require.EqualError(t, p.Err, "no space left")
	require.Equal(t, 1, disk.writes)
	require.EqualError(t, WriteJSON(disk, 1), "no space left")
}

// What is said is clean, and information only unless a command is to be silent.
func TestVoice(t *testing.T) {
	var out strings.Builder
	silent := false
	v := &Voice{Command: "feedhistory", Stderr: &out, Silent: &silent}
	v.Tell("info\x1b")
	v.Say("error")
	_, err := v.Asides().Write([]byte("aside\n"))
	require.NoError(t, err)
	silent = true
	v.Tell("info")
	v.Say("error")
	_, err = v.Asides().Write([]byte("aside\n"))
	require.NoError(t, err)
	require.Equal(t, "feedhistory: info�\nfeedhistory: error\naside\nfeedhistory: error\n", out.String())
}

func TestClean(t *testing.T) {
	for text, want := range map[string]string{
		"plain":                    "plain",
		" a\r\n\tb\u00a0c\u2028d ": "a b c d",
		"\x1b[31mred\x07":          "\ufffd[31mred\ufffd",
		"c1 \u009b2J":              "c1 \ufffd2J",
		"\u202egnp.exe\u2066":      "gnp.exe",
		"bad \xff\xfe":             "bad \ufffd\ufffd",
		"👩‍👩‍👧 family":             "👩‍👩‍👧 family",
	} {
		require.Equal(t, want, Clean(text), "%q", text)
	}
}

func TestJSON(t *testing.T) {
	require.Equal(t, `"\u007f \u009b \u202e é <&>"`, string(JSON([]byte("\"\x7f \u009b \u202e é <&>\""))))
	require.Equal(t, `"plain"`, string(JSON([]byte(`"plain"`))))
}

func TestCut(t *testing.T) {
	for _, test := range []struct {
		text  string
		width int
		want  string
	}{
		{"short", 5, "short"},
		{"longer", 5, "long…"},
		{"two words", 5, "two…"},
		{"日本語", 6, "日本語"},
		{"日本語", 5, "日本…"},
		{"日本語", 4, "日…"},
	} {
		if got := Cut(test.text, test.width); got != test.want {
			t.Errorf("cut(%q, %d) = %q, want %q", test.text, test.width, got, test.want)
		}
	}
}

func TestHarmless(t *testing.T) {
	var out strings.Builder
	if err := WriteJSON(&out, "\x1b \x7f \u009b \u202e é <&>"); err != nil {
		t.Fatal(err)
	}
	if want := `"\u001b \u007f \u009b \u202e é <&>"` + "\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
