// Package words splits the text of entries, and search queries, into words.
//
// Methods of nil pointers may panic, unless their comments say otherwise.
package words

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
	"golang.org/x/text/unicode/norm"

	"github.com/feedhistory/feedhistory"
)

const (
	maxWord  = 64        // the number of a word's bytes that count
	maxWords = 128 << 10 // the maximum size in bytes of an entry's words; PostgreSQL accepts a megabyte
)

// A Set is a set of words. The zero value is empty.
type Set struct {
	// Phrases are the phrases of a Query, found while words are added, for Query.Match. Set them
	// before the first word.
	Phrases []Term

	seen    map[string]struct{}
	list    []string
	size    int
	word    []byte
	finders []phraseFinder    // of Phrases, in the text at hand
	each    func(word string) // is called for each word of a text; nil for none
}

// Fields returns the words of a text, each once: runs of letters and digits, in
// lower case, without diacritics. In scripts without spaces between words, each
// character is a word.
func Fields(text string) []string {
	var s Set
	s.Add(text)
	return s.Words()
}

// Words returns the words in the order in which they were first added. They are
// valid until the next Reset.
func (s *Set) Words() []string { return s.list }

// Reset empties the set.
func (s *Set) Reset() {
	clear(s.seen)
	s.list, s.size = s.list[:0], 0
}

// AddEntry adds the words of an entry's content, or of its summary if it has no
// content.
func (s *Set) AddEntry(e *feedhistory.Entry) {
	if e == nil {
		return
	}
	text := e.Content()
	if text == (feedhistory.Text{}) {
		text = e.Summary()
	}
	switch kind := strings.ToLower(text.Type); {
	case kind == "html" || kind == "xhtml":
		s.addMarkup(text.Body)
	case kind == "" || kind == "text" || strings.HasPrefix(kind, "text/"):
		s.Add(text.Body)
	}
}

// addMarkup adds the words of HTML. A tag ends a word.
func (s *Set) addMarkup(body string) {
	s.begin()
	if !strings.ContainsAny(body, "<&") {
		s.add(body)
		return
	}
	z := html.NewTokenizer(strings.NewReader(body))
	for skip := false; ; {
		switch z.Next() {
		case html.ErrorToken:
			return
		case html.StartTagToken:
			name, _ := z.TagName()
			skip = string(name) == "script" || string(name) == "style"
		case html.EndTagToken:
			skip = false
		case html.TextToken:
			if !skip {
				s.add(string(z.Text()))
			}
		}
	}
}

// Add adds the words of a plain text.
func (s *Set) Add(text string) {
	s.begin()
	s.add(text)
}

// begin starts a new text: no phrase continues from the last one.
func (s *Set) begin() {
	s.finders = s.finders[:0]
	for _, t := range s.Phrases {
		s.finders = append(s.finders, phraseFinder{Term: t})
	}
}

// add adds the words of a part of a text.
func (s *Set) add(text string) {
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c >= utf8.RuneSelf:
			i += s.addRune(text[i:])
			continue
		case 'a' <= c && c <= 'z' || '0' <= c && c <= '9':
			s.word = append(s.word, c)
		case 'A' <= c && c <= 'Z':
			s.word = append(s.word, c+'a'-'A')
		default:
			s.end()
		}
		i++
	}
	s.end()
}

// addRune adds the first character of text, and returns its length in bytes.
func (s *Set) addRune(text string) int {
	r, n := utf8.DecodeRuneInString(text)
	switch {
	case unicode.In(r, unspaced...):
		s.end()
		s.word = utf8.AppendRune(s.word, r)
		s.end()
	case unicode.Is(unicode.Hangul, r):
		s.word = utf8.AppendRune(s.word, r)
	case unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r):
		for _, part := range norm.NFKD.String(string(r)) {
			if !unicode.IsMark(part) || !unicode.Is(unicode.Inherited, part) {
				s.word = utf8.AppendRune(s.word, unicode.ToLower(unicode.ToUpper(part)))
			}
		}
	default:
		s.end()
	}
	return n
}

// unspaced are the scripts without spaces between words.
var unspaced = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
}

// end ends a word.
func (s *Set) end() {
	if len(s.word) == 0 {
		return
	}
	word := s.word[:min(len(s.word), maxWord)]
	for !utf8.Valid(word) {
		word = word[:len(word)-1]
	}
	s.word = s.word[:0]
	if s.each != nil {
		s.each(string(word))
	}
	if _, ok := s.seen[string(word)]; !ok && s.size+len(word) <= maxWords {
		w := string(word)
		s.see(w)
		s.list = append(s.list, w)
		s.size += len(w) + 1
	}
	for i := range s.finders {
		f := &s.finders[i]
		if f.next(string(word)) && s.Contains(f.Phrase, f.Begins) { // as the index has it
			s.see(f.key())
		}
	}
}

// see makes the set contain a word, or the key of a phrase.
func (s *Set) see(key string) {
	if s.seen == nil {
		s.seen = map[string]struct{}{}
	}
	s.seen[key] = struct{}{}
}

// Contains reports whether all of the given words are in the set. With prefix,
// the last one may be the beginning of a word in the set.
func (s *Set) Contains(all []string, prefix bool) bool {
	if last := len(all) - 1; prefix && last >= 0 {
		begins := func(word string) bool { return strings.HasPrefix(word, all[last]) }
		return slices.ContainsFunc(s.list, begins) && s.Contains(all[:last], false)
	}
	return !slices.ContainsFunc(all, func(w string) bool {
		_, ok := s.seen[w]
		return !ok
	})
}
