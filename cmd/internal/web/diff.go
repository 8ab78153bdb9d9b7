package web

import (
	"html/template"
	"slices"
	"strings"
)

// mostCompared is the maximum number of words of each version to compare: the
// time grows with the product of their numbers.
const mostCompared = 3000

// difference shows, word by word, how a text became another; "" if the texts
// are too long to compare, or equal.
func difference(old, new string) template.HTML {
	a, b := strings.Fields(old), strings.Fields(new)
	if len(a) > mostCompared || len(b) > mostCompared || slices.Equal(a, b) {
		return ""
	}
	from := 0
	for from < len(a) && from < len(b) && a[from] == b[from] {
		from++
	}
	to := 0
	for to < len(a)-from && to < len(b)-from && a[len(a)-1-to] == b[len(b)-1-to] {
		to++
	}
	var out strings.Builder
	write := func(tag string, words []string) {
		if len(words) == 0 {
			return
		}
		text := template.HTMLEscapeString(strings.Join(words, " "))
		if tag != "" {
			text = "<" + tag + ">" + text + "</" + tag + ">"
		}
		if out.Len() > 0 {
			out.WriteByte(' ')
		}
		out.WriteString(text)
	}
	write("", a[:from])
	compare(a[from:len(a)-to], b[from:len(b)-to], write)
	write("", a[len(a)-to:])
	return template.HTML(out.String()) // the words are escaped
}

// compare writes the words two lists have in common and those of only one of them,
// by their longest common subsequence.
func compare(a, b []string, write func(tag string, words []string)) {
	width := len(b) + 1
	longest := make([]int16, (len(a)+1)*width)
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				longest[i*width+j] = longest[(i+1)*width+j+1] + 1
			} else {
				longest[i*width+j] = max(longest[(i+1)*width+j], longest[i*width+j+1])
			}
		}
	}
	for i, j := 0, 0; i < len(a) || j < len(b); {
		i0, j0 := i, j
		for i < len(a) && j < len(b) && a[i] == b[j] {
			i, j = i+1, j+1
		}
		write("", a[i0:i])
		i0, j0 = i, j
		for (i < len(a) || j < len(b)) && !(i < len(a) && j < len(b) && a[i] == b[j]) {
			if j == len(b) || i < len(a) && longest[(i+1)*width+j] >= longest[i*width+j+1] {
				i++
			} else {
				j++
			}
		}
		write("del", a[i0:i])
		write("ins", b[j0:j])
	}
}
