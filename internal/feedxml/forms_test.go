package feedxml_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "github.com/feedhistory/feedhistory/internal/feedxml"
)

// The forms of texts are those of these expressions, which a program would compile at each start.
func TestForms(t *testing.T) {
	language := regexp.MustCompile(`^[A-Za-z]{2,3}(-[0-9A-Za-z]{1,8})*$`)
	email := regexp.MustCompile("^[0-9A-Za-z_+.'!#$%&*/=?^`{|}~-]+@([0-9A-Za-z][0-9A-Za-z-]*\\.)+[0-9A-Za-z][0-9A-Za-z-]*$")
	declaring := regexp.MustCompile(`^<[^\s/>]+(?:\s+[^\s=]+\s*=\s*(?:"[^"]*"|'[^']*'))*?\s+xmlns\s*=`)
	travelled := regexp.MustCompile(`(?m)^(<[^\s/>]+(?: xml:(?:base|lang)="[^"]*")*) xmlns="` + regexp.QuoteMeta(RSS2) + `"`)
	rapid.Check(t, func(t *rapid.T) {
		tag := rapid.StringMatching(`([a-z]{1,4}|Ä)?(-[a-z0-9]{0,9}){0,3}`).Draw(t, "language")
		require.Equal(t, language.MatchString(tag), IsLanguage(tag), tag)
		address := rapid.StringMatching(`[a+ü]{0,3}@?-?[a-z0-9-]{0,3}(\.-?[a-z0-9@-]{0,3}){0,3}`).Draw(t, "email")
		require.Equal(t, email.MatchString(address), IsEmail(address), address)
		element := rapid.StringMatching(`<(a|a:b)((\s{0,2}|\n)(xmlns|x|xmlns:p|>)( ?= ?)("[^"]{0,2}"|'[^']{0,2}'|"))*/>`).Draw(t, "element")
		require.Equal(t, declaring.MatchString(element), Into(RSS2, element) == element, element)
		elements := rapid.StringMatching(`(<[a/]( xml:(base|lang)="[a\n]?"?){0,2} (xmlns="http://backend\.userland\.com/rss2"){0,2}/?>\n?){0,4}`).Draw(t, "elements")
		require.Equal(t, travelled.ReplaceAllString(elements, "$1"), OutOfRSS2(elements), elements)
	})
}
