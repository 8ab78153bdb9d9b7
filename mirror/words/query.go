package words

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Query is a search. A text meets it if it meets all terms of one of its groups.
type Query [][]Term

// A Term is a word, the beginning of a word, or a phrase.
type Term struct {
	Not    bool     // Not means the text must not have it.
	Forms  []string // Forms is the word, followed by its other forms, of which any will do; nil for a phrase.
	Phrase []string // Phrase is the words of a phrase, one after the other.
	Begins bool     // Begins means any word will do that begins as the first form, or as the last word of the phrase, does.
}

// mostTerms is the maximum number of words in a search.
const mostTerms = 64

// Parse reads a search as people write it on the web: a text must have all of its words, in any
// of their English forms, or in this one if it is quoted; "several quoted words" as they stand;
// no word or phrase after a minus; and either what stands before OR or what stands after. With
// prefix, the last word may be the beginning of one. The error matches errors.ErrUnsupported if
// there is nothing to look for, or too much.
func Parse(search string, prefix bool) (Query, error) {
	var q Query
	var group []Term
	terms := 0
	for rest := strings.TrimSpace(search); rest != ""; rest = strings.TrimSpace(rest) {
		var t token
		if t, rest = nextToken(rest); t.text == "OR" && !t.quoted && !t.not {
			q, group = append(q, group), nil
			continue
		}
		added := t.terms()
		for _, term := range added {
			terms += len(term.Phrase) + min(len(term.Forms), 1)
		}
		group = append(group, added...)
		if n := len(group); prefix && len(added) > 0 && rest == "" && !t.closed {
			group[n-1].Begins = !group[n-1].Not
		}
	}
	q = slices.DeleteFunc(append(q, group), func(group []Term) bool { return len(group) == 0 })
	isVain := func(group []Term) bool { return !slices.ContainsFunc(group, func(t Term) bool { return !t.Not }) }
	switch {
	case len(q) == 0:
		return nil, fmt.Errorf("no words in %q: %w", search, errors.ErrUnsupported)
	case terms > mostTerms:
		return nil, fmt.Errorf("more than %d words in a search: %w", mostTerms, errors.ErrUnsupported)
	case slices.ContainsFunc(q, isVain):
		return nil, fmt.Errorf("only words to leave out in %q: %w", search, errors.ErrUnsupported)
	}
	return q, nil
}

// A token is a part of a search between spaces or quotes.
type token struct {
	text        string
	not, quoted bool
	closed      bool // whether the second quote is there
}

// nextToken returns the first token of a search without spaces at its beginning, and the rest.
func nextToken(search string) (t token, rest string) {
	if t.text, t.not = strings.CutPrefix(search, "-"); t.text == "" || strings.IndexFunc(t.text, unicode.IsSpace) == 0 {
		return token{}, t.text // a dash
	}
	if quoted, ok := strings.CutPrefix(t.text, `"`); ok {
		t.quoted = true
		t.text, rest, t.closed = strings.Cut(quoted, `"`)
		return t, rest
	}
	end := strings.IndexFunc(t.text, func(r rune) bool { return r == '"' || unicode.IsSpace(r) })
	if end >= 0 {
		t.text, rest = t.text[:end], t.text[end:]
	}
	return t, rest
}

// terms returns the terms of a token.
func (t token) terms() (terms []Term) {
	list := sequence(t.text)
	switch {
	case len(list) == 1 && t.quoted:
		return []Term{{Not: t.not, Forms: list}}
	case len(list) > 1 && (t.quoted || t.not):
		return []Term{{Not: t.not, Phrase: list}}
	}
	for _, word := range list {
		terms = append(terms, Term{Not: t.not, Forms: forms(word)})
	}
	return terms
}

// sequence returns the words of a text as they follow each other.
func sequence(text string) (list []string) {
	s := Set{each: func(word string) { list = append(list, word) }}
	s.Add(text)
	return list
}

// IsBeginning reports whether the last word of a search may be incomplete, because somebody is
// still typing. One or two letters do not count, because too many words begin with them.
func IsBeginning(search string) bool {
	last := search[strings.LastIndexFunc(search, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !unicode.IsMark(r) })+1:]
	return utf8.RuneCountInString(last) > 2
}

// Phrases returns the phrases of the query, for a Set to find them.
func (q Query) Phrases() (phrases []Term) {
	for _, group := range q {
		for _, t := range group {
			if t.Phrase != nil {
				phrases = append(phrases, t)
			}
		}
	}
	return phrases
}

// HasBeginning reports whether the query has the beginning of a word.
func (q Query) HasBeginning() bool {
	return slices.ContainsFunc(q, func(group []Term) bool { return slices.ContainsFunc(group, func(t Term) bool { return t.Begins }) })
}

// Match reports whether a text meets the query. The argument is Set.Contains of the set of its
// words, whose Phrases are those of the query. The zero Query is met by no text.
func (q Query) Match(contains func(all []string, prefix bool) bool) bool {
	has := func(t Term) bool {
		if t.Phrase != nil {
			return contains([]string{t.key()}, false)
		}
		return slices.ContainsFunc(t.Forms, func(form string) bool { return contains([]string{form}, false) }) ||
			t.Begins && contains(t.Forms[:1], true)
	}
	return slices.ContainsFunc(q, func(group []Term) bool {
		return !slices.ContainsFunc(group, func(t Term) bool { return has(t) == t.Not })
	})
}

// Marks reports whether a part of a text is one of the words the query looks for.
func (q Query) Marks(text string) bool {
	is := func(word string) bool {
		return slices.ContainsFunc(q, func(group []Term) bool {
			return slices.ContainsFunc(group, func(t Term) bool { return !t.Not && t.names(word) })
		})
	}
	return len(q) > 0 && slices.ContainsFunc(Fields(text), is)
}

// names reports whether a word is one of the term's.
func (t Term) names(word string) bool {
	all, beginning := t.Forms, 0
	if t.Phrase != nil {
		all, beginning = t.Phrase, len(t.Phrase)-1
	}
	return slices.Contains(all, word) || t.Begins && strings.HasPrefix(word, all[beginning])
}

// key returns the text under which a Set counts a phrase. It contains a space, so it differs from
// every word.
func (t Term) key() string {
	key := strings.Join(t.Phrase, " ")
	if t.Begins {
		key += "*"
	}
	return key
}

// A phraseFinder follows the words of a text, and finds a phrase.
type phraseFinder struct {
	Term
	begun []int // how many words of the phrase the last words of the text are, for each place where it may have begun
}

// next takes the next word of a text, and reports whether it ends the phrase.
func (f *phraseFinder) next(word string) (found bool) {
	still := f.begun[:0]
	for _, n := range append(f.begun, 0) {
		last := n == len(f.Phrase)-1
		if word != f.Phrase[n] && !(last && f.Begins && strings.HasPrefix(word, f.Phrase[n])) {
			continue
		}
		if found = found || last; !last {
			still = append(still, n+1)
		}
	}
	f.begun = still
	return found
}
