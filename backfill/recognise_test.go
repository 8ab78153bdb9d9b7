package backfill

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
)

func TestCandidates(t *testing.T) {
	rss := func(head string) string {
		return `<rss version="2.0" xmlns:discourse="http://www.discourse.org/"><channel><title>F</title>` + head + `<item><guid>1</guid></item></channel></rss>`
	}
	atom := func(head string) string {
		return `<feed xmlns="http://www.w3.org/2005/Atom">` + head + `<entry><id>1</id></entry></feed>`
	}
	plain := func(head string) string { return strings.Replace(rss(head), "discourse.org", "example.org", 1) }
	for text, want := range map[string]string{
		plain("<generator>https://wordpress.org/?v=6.7.1</generator>"):                        "wordpress!",
		plain("<generator>http://wordpress.com/</generator>"):                                 "wordpress!",
		atom(`<generator uri="https://wordpress.org/" version="6.7.1">WordPress</generator>`): "wordpress!",
		atom(`<generator version="7.00" uri="https://www.blogger.com">Blogger</generator>`):   "blogger!",
		plain("<generator>Blogger</generator>"):                                               "blogger!",
		atom(`<generator>Blogger</generator><link rel="next" href="2"/>`):                     "blogger!",
		plain("<generator>Podlove Podcast Publisher v4.1</generator>"):                        "podlove!",
		plain(`<generator>ghost 2.1</generator>`):                                             "ghost!",
		plain("<generator>Hugo -- gohugo.io</generator>"):                                     "",
		plain(""): "wordpress?",
		rss(""):   "discourse! wordpress?",
		plain("<generator>https://wordpress.org/?v=6</generator><link rel='next' href='2'/>"):                                                                    "",
		atom(`<generator>WordPress</generator><link rel="next" href="2"/>`):                                                                                      "",
		atom(`<link rel="prev-archive" href="2"/>`):                                                                                                              "",
		`{"version":"https://jsonfeed.org/version/1.1","items":[{"id":"1"}]}`:                                                                                    "",
		strings.Replace(plain(""), "<guid>1", "<guid>17 at http://example.org", 1):                                                                               "drupal! wordpress?",
		strings.Replace(atom(""), "<id>1", "<id>tag:github.com,2008:Repository/1/v1.2.3", 1):                                                                     "github! wordpress?",
		strings.Replace(plain(""), "<item>", "<item><generator>Ghost 2</generator>", 1):                                                                          "wordpress?",
		`<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"><channel><title>x</title></channel><item/></rdf:RDF>`: "wordpress?",
	} {
		doc, err := feedhistory.Parse(strings.NewReader(text), "http://example.org/feed")
		require.NoError(t, err)
		sure, maybe := new(Backfill).Candidates(doc)
		var got []string
		for _, m := range sure {
			require.Equal(t, Yes, m.Recognise(doc))
			got = append(got, m.Name()+"!")
		}
		for _, m := range maybe {
			require.Equal(t, Maybe, m.Recognise(doc))
			got = append(got, m.Name()+"?")
		}
		require.Equal(t, want, strings.Join(got, " "), text)
	}
	require.Equal(t, "no any maybe yes yes", strings.Join([]string{No.String(), Any.String(), Maybe.String(), Yes.String(), Sign(9).String()}, " "))
}
