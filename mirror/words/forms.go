package words

import (
	"slices"
	"strings"
)

// The forms of English words are made for a search, not stemmed for the index: so the beginning
// of a word finds it however far it has been typed, an index made earlier serves, and every
// database finds the same. A form nobody writes is found nowhere.

// uninflected are words that only look like a form of another.
var uninflected = []string{"news"}

// forms returns a word, followed by its other forms: its plural or singular, and those of a verb.
func forms(word string) []string {
	list := []string{word}
	isLetter := func(r rune) bool { return 'a' <= r && r <= 'z' }
	if len(word) < 3 || strings.ContainsFunc(word, func(r rune) bool { return !isLetter(r) }) || slices.Contains(uninflected, word) {
		return list
	}
	for _, base := range bases(word) {
		for _, form := range inflected(base) {
			if !slices.Contains(list, form) && !slices.Contains(uninflected, form) {
				list = append(list, form)
			}
		}
	}
	return list
}

// bases returns the words of which a word may be a form, itself included.
func bases(word string) []string {
	all := []string{word}
	if base, ok := strings.CutSuffix(word, "s"); ok && len(word) > 3 && !endsIn(base, "s", "u", "i") {
		all = append(all, base)
		if stem, ok := strings.CutSuffix(base, "e"); ok && endsIn(stem, "s", "x", "z", "ch", "sh", "o") {
			all = append(all, stem)
		}
		if stem, ok := strings.CutSuffix(base, "ie"); ok && len(stem) > 1 {
			all = append(all, stem+"y")
		}
	}
	for _, ending := range []string{"ed", "ing"} {
		stem, ok := strings.CutSuffix(word, ending)
		if !ok || len(stem) < 3 || !strings.ContainsAny(stem, "aeiouy") || endsIn(word, "eed") {
			continue
		}
		all = append(all, stem, stem+"e")
		if n := len(stem); stem[n-1] == stem[n-2] {
			all = append(all, stem[:n-1])
		}
		if base, ok := strings.CutSuffix(stem, "i"); ok {
			all = append(all, base+"y")
		}
	}
	return all
}

// inflected returns a word with its plural, or its third person, and its forms in -ed and -ing.
func inflected(base string) []string {
	all := []string{base}
	stem, endsInY := strings.CutSuffix(base, "y")
	endsInY = endsInY && !endsIn(stem, "a", "e", "o", "u")
	switch {
	case endsInY:
		all = append(all, stem+"ies", stem+"ied")
	case endsIn(base, "s", "x", "z", "ch", "sh"):
		all = append(all, base+"es")
	case endsIn(base, "o"):
		all = append(all, base+"s", base+"es")
	default:
		all = append(all, base+"s")
	}
	if len(base) < 3 {
		return all
	}
	mute, endsInE := strings.CutSuffix(base, "e")
	switch {
	case endsInE && endsIn(mute, "e"):
		if len(base) > 3 { // a seed is no form of to see
			all = append(all, base+"d")
		}
		all = append(all, base+"ing")
	case endsInE:
		all = append(all, base+"d", mute+"ing")
	case endsInY:
		all = append(all, base+"ing")
	default:
		all = append(all, base+"ed", base+"ing")
		if n := len(base); strings.IndexByte("aeiou", base[n-2]) >= 0 && strings.IndexByte("aeiouwxy", base[n-1]) < 0 {
			double := base + base[n-1:]
			all = append(all, double+"ed", double+"ing")
		}
	}
	return all
}

func endsIn(word string, endings ...string) bool {
	return slices.ContainsFunc(endings, func(ending string) bool { return strings.HasSuffix(word, ending) })
}
