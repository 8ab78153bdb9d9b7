package feedhistory

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/feedhistory/feedhistory/internal/iri"
)

// Publishers name their archives so one can tell the next: archive-41, archive-40;
// ?start=20, ?start=30; /2019/05/, /2019/04/. Requesting these before a link names them
// saves a chain from taking a round trip per document. Only links count: a document
// without a link is discarded.

// mostWasted is the number of guessed requests of a walk that may turn out to be wrong.
const mostWasted = 4

// A guesser expects the URLs of a chain's documents from those before.
type guesser struct {
	last   string // the last URL named by a link
	step   step   // from the URL before it to the last
	fits   int    // how many steps in a row were the same
	needed int    // how many must be; zero means 1 or 2, see learn
	wasted int    // the number of requests in vain
	over   bool   // no more guesses
}

// A step is the difference between two URLs.
type step struct {
	at    int // the index of the changing number
	by    int
	month bool // the number is a month, and the one before it the year, or it has both
}

// learn takes note of the next URL named by a link.
func (g *guesser) learn(url string) {
	if url == g.last {
		return
	}
	s, ok := stepBetween(g.last, url)
	switch g.last = url; {
	case !ok:
		g.step, g.fits = step{}, 0
	case s == g.step:
		g.fits++
	default:
		g.step, g.fits = s, 1
	}
}

// miss takes note of wasted requests: links named other URLs. Months may have holes.
func (g *guesser) miss(requests int) {
	if requests == 0 {
		return
	}
	g.wasted += requests
	g.over = g.over || !g.step.month || g.wasted >= mostWasted
	g.fits, g.needed = 0, 2
}

// after returns the URL expected after another one of the chain.
func (g *guesser) after(url string) (string, bool) {
	needed := max(g.needed, 1)
	if g.step.by != 1 && g.step.by != -1 { // as two random numbers have some distance
		needed = 2
	}
	if g.over || g.fits < needed {
		return "", false
	}
	return g.step.from(url)
}

// numbersOf cuts the path and query of a URL into texts and the numbers between them. It
// returns none for a URL possibly signed, or with a secret.
func numbersOf(url string) (texts, numbers []string) {
	r := iri.Split(url)
	for field := range strings.SplitSeq(strings.ToLower(r.Query), "&") {
		name, _, _ := strings.Cut(field, "=")
		for _, word := range []string{"token", "sig", "expire", "key", "auth", "secret", "hash", "session", "pass", "nonce", "hmac", "code"} {
			if strings.Contains(name, word) {
				return nil, nil
			}
		}
	}
	path := strings.Index(url, r.Authority) + len(r.Authority)
	text, rest := url[:path], url[path:]
	for rest != "" {
		i := strings.IndexAny(rest, "0123456789")
		if i < 0 {
			break
		}
		n := len(rest) - i - len(strings.TrimLeft(rest[i:], "0123456789"))
		texts, numbers = append(texts, text+rest[:i]), append(numbers, rest[i:i+n])
		text, rest = "", rest[i+n:]
	}
	return append(texts, text+rest), numbers
}

// stepBetween returns the step from one URL to another, if they differ in one number, or
// in a month and its year.
func stepBetween(from, to string) (step, bool) {
	texts, a := numbersOf(from)
	others, b := numbersOf(to)
	if len(a) == 0 || strings.Join(texts, "\n") != strings.Join(others, "\n") {
		return step{}, false
	}
	at, changed := -1, 0
	for i := range a {
		if a[i] != b[i] {
			at, changed = i, changed+1
		}
	}
	if at < 0 || changed > 2 || changed == 2 && a[at-1] == b[at-1] {
		return step{}, false
	}
	before, wasMonth := months(a, texts, at)
	after, isMonth := months(b, texts, at)
	if wasMonth && isMonth {
		return step{at, after - before, true}, true
	}
	x, err := strconv.Atoi(a[at])
	y, err2 := strconv.Atoi(b[at])
	return step{at, y - x, false}, changed == 1 && err == nil && err2 == nil
}

// months returns the number of months counted by a number, or by it and the year before it.
func months(numbers, texts []string, at int) (int, bool) {
	number := numbers[at]
	switch {
	case len(number) == 6:
	case len(number) == 2 && at > 0 && len(numbers[at-1]) == 4 && (texts[at] == "/" || texts[at] == "-"):
		number = numbers[at-1] + number
	default:
		return 0, false
	}
	n, err := strconv.Atoi(number)
	year, month := n/100, n%100
	return 12*year + month - 1, err == nil && year >= 1980 && year < 2100 && month >= 1 && month <= 12
}

// from returns the URL one step from another.
func (s step) from(url string) (string, bool) {
	texts, numbers := numbersOf(url)
	if s.at >= len(numbers) {
		return "", false
	}
	old := numbers[s.at]
	if s.month {
		n, ok := months(numbers, texts, s.at)
		if n += s.by; !ok || n < 12*1980 {
			return "", false
		}
		numbers[s.at] = fmt.Sprintf("%02d", n%12+1)
		if year := strconv.Itoa(n / 12); len(old) == 6 {
			numbers[s.at] = year + numbers[s.at]
		} else {
			numbers[s.at-1] = year
		}
	} else {
		n, err := strconv.Atoi(old)
		if n += s.by; err != nil || n < 0 || n == 0 && s.by == -1 {
			return "", false
		}
		numbers[s.at] = strconv.Itoa(n)
		switch padded := old[0] == '0'; {
		case padded:
			numbers[s.at] = fmt.Sprintf("%0*d", len(old), n)
		case len(numbers[s.at]) < len(old): // 9 or 09?
			return "", false
		}
	}
	var b strings.Builder
	for i, text := range texts {
		b.WriteString(text)
		if i < len(numbers) {
			b.WriteString(numbers[i])
		}
	}
	return b.String(), true
}
