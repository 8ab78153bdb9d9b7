package terminal

import (
	"strings"
	"testing"
)

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
