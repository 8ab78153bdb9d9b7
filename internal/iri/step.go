package iri

import (
	"fmt"
	"strconv"
	"strings"
)

// A Step is the difference between two URLs with one number, or month, changed.
type Step struct {
	at    int  // the index of the changing number
	By    int  // the difference of the numbers, or the number of months
	Month bool // the number is a month, and the one before it the year, or it has both
}

// numbersOf cuts the path and query of a URL into texts and the numbers between them. It
// returns none for a URL possibly signed, or with a secret.
func numbersOf(url string) (texts, numbers []string) {
	r := Split(url)
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

// StepBetween returns the step from one URL to another, if they differ in one number, or
// in a month and its year.
func StepBetween(from, to string) (Step, bool) {
	texts, a := numbersOf(from)
	others, b := numbersOf(to)
	if len(a) == 0 || strings.Join(texts, "\n") != strings.Join(others, "\n") {
		return Step{}, false
	}
	at, changed := -1, 0
	for i := range a {
		if a[i] != b[i] {
			at, changed = i, changed+1
		}
	}
	if at < 0 || changed > 2 || changed == 2 && a[at-1] == b[at-1] {
		return Step{}, false
	}
	before, wasMonth := months(a, texts, at)
	after, isMonth := months(b, texts, at)
	if wasMonth && isMonth {
		return Step{at, after - before, true}, true
	}
	x, err := strconv.Atoi(a[at])
	y, err2 := strconv.Atoi(b[at])
	return Step{at, y - x, false}, changed == 1 && err == nil && err2 == nil
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

// From returns the URL one step from another.
func (s Step) From(url string) (string, bool) {
	texts, numbers := numbersOf(url)
	if s.at >= len(numbers) {
		return "", false
	}
	old := numbers[s.at]
	if s.Month {
		n, ok := months(numbers, texts, s.at)
		if n += s.By; !ok || n < 12*1980 {
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
		if n += s.By; err != nil || n < 0 || n == 0 && s.By == -1 {
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
