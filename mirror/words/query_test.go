package words

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// matches reports whether a text meets a search.
func matches(t require.TestingT, text, search string, prefix bool) bool {
	q, err := Parse(search, prefix)
	require.NoError(t, err, search)
	s := Set{Phrases: q.Phrases()}
	s.Add(text)
	return q.Match(s.Contains)
}

func TestQuery(t *testing.T) {
	texts := []string{"Rope and tar", "A ropewalk", "Tar barrels", "Sail loft", "Two apples, one apple pie", "The storm petrel, storm after storm petrels"}
	for search, want := range map[string]string{
		"rope": "0", "ROPE tar": "0", "tar rope": "0", "tar -rope": "2", "rope OR sail": "0 3", "tar rope OR sail loft": "0 3",
		"apple": "4", "apples": "4", "barrel": "2", "petrel": "5", "pies": "4",
		`"apples"`: "4", `"pies"`: "", `"apple pie"`: "4", `"pie apple"`: "", `"storm petrels"`: "5", `"storm after storm"`: "5", `"storm storm"`: "",
		`-"storm petrel" storm OR loft`: "3", `tar -"rope and tar"`: "2", `-"apple pie" apples OR sail`: "3", "sail -loft": "",
		"rope OR": "0", "OR rope": "0", "rope OR OR sail": "0 3", "rope or sail": "", "- tar": "0 2", "tar - rope": "0", "--rope tar": "2", "tar-barrel": "2",
		`"rope`: "0", `tar"rope`: "0", `"" tar`: "0 2", "東京": "", "news": "",
	} {
		var found []string
		for i, text := range texts {
			if matches(t, text, search, false) {
				found = append(found, string(rune('0'+i)))
			}
		}
		require.Equal(t, want, strings.Join(found, " "), search)
	}
	for search, want := range map[string]string{
		"ropew": "1", "tar ro": "0", "ro tar": "", "apples": "4", "sail OR ropew": "1 3", "tar -ro": "0 2", `"storm pet`: "5", `"storm pet"`: "", `"petrels sto`: "", `tar "barr`: "2",
	} {
		var found []string
		for i, text := range texts {
			if matches(t, text, search, true) {
				found = append(found, string(rune('0'+i)))
			}
		}
		require.Equal(t, want, strings.Join(found, " "), "%s…", search)
	}
}

func TestQueryWrong(t *testing.T) {
	for _, search := range []string{"", " ", "+", "OR", "-", "--", "-rope", `-"a rope"`, "rope OR -sail", `""`, strings.Repeat("rope ", mostTerms+1), `"` + strings.Repeat("rope ", mostTerms+1) + `"`} {
		_, err := Parse(search, true)
		require.ErrorIs(t, err, errors.ErrUnsupported, search)
	}
	_, err := Parse(strings.Repeat("rope ", mostTerms), false)
	require.NoError(t, err)
}

// A form of a word leads back to it, unless they are told apart.
func TestForms(t *testing.T) {
	for word, want := range map[string][]string{
		"apple": {"apples"}, "apples": {"apple"}, "story": {"stories"}, "stories": {"story"}, "movies": {"movie"}, "class": {"classes"}, "classes": {"class"},
		"boxes": {"box"}, "potato": {"potatoes"}, "running": {"run", "runs"}, "run": {"running"}, "stopped": {"stop", "stopping"}, "sailing": {"sail", "sailed", "sails"},
		"moved": {"move", "moving"}, "moving": {"move", "moves"}, "tried": {"try", "tries"}, "try": {"tried", "trying"}, "agreed": {}, "agree": {"agreed"}, "days": {"day"},
	} {
		require.Equal(t, word, forms(word)[0])
		require.Subset(t, forms(word), want, word)
	}
	for word, other := range map[string]string{"see": "seed", "news": "new", "new": "news", "thing": "th", "need": "ne", "bus": "bu", "this": "thi", "string": "str"} {
		require.NotContains(t, forms(word), other)
	}
	for _, word := range []string{"go", "c3po", "ropé", "東", "news"} {
		require.Equal(t, []string{word}, forms(word))
	}
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.StringMatching(`[a-z]{1,12}`).Draw(t, "word")
		list := forms(word)
		require.LessOrEqual(t, len(list), 40)
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(list))), len(list))
	})
}

func TestIsBeginning(t *testing.T) {
	for search, want := range map[string]bool{"": false, "ro": false, "rop": true, "tar rop": true, "rope ": false, `"rope"`: false, `"rope`: true, "tar -rop": true} {
		require.Equal(t, want, IsBeginning(search), search)
	}
}

func TestMarks(t *testing.T) {
	q, err := Parse(`apples -sail OR "storm petrels" ropew`, true)
	require.NoError(t, err)
	for word, want := range map[string]bool{"Apple": true, "apples": true, "applesauce": false, "sail": false, "Storm": true, "petrel": false, "petrels": true, "ropewalk": true, "rope": false} {
		require.Equal(t, want, q.Marks(word), word)
	}
	require.False(t, Query(nil).Marks("apple"))
}
