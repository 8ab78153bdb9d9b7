package chain

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is expected after the last of some URLs; "" is nothing.
func TestGuesser(t *testing.T) {
	const site = "https://example.org"
	for urls, want := range map[string]string{
		"/archive-41 /archive-40":                               "/archive-39",
		"/archive-41":                                           "",
		"/archive-11 /archive-10":                               "", // 9 or 09
		"/archive-10 /archive-9":                                "/archive-8",
		"/archive-2 /archive-1":                                 "", // there is hardly a 0
		"/0041.atom /0040.atom":                                 "/0039.atom",
		"/0010.atom /0009.atom":                                 "/0008.atom",
		"/feed?page=2 /feed?page=3":                             "/feed?page=4",
		"/feed?page=9 /feed?page=10":                            "/feed?page=11",
		"/feed?start=10 /feed?start=20":                         "", // two random numbers have some distance
		"/feed?start=10 /feed?start=20 /feed?start=30":          "/feed?start=40",
		"/83492 /19283":                                         "",
		"/83492 /19283 /77123":                                  "",
		"/2019/05/ /2019/04/":                                   "/2019/03/",
		"/2019/02/ /2019/01/":                                   "/2018/12/",
		"/2019/01/ /2018/12/":                                   "/2018/11/",
		"/2019-11.atom /2019-12.atom":                           "/2020-01.atom",
		"/201902.atom /201901.atom":                             "/201812.atom",
		"/2019/ /2018/":                                         "/2017/",
		"/2019/05/09 /2019/05/08":                               "", // 7 or 07 is known: see below
		"/v2/a-5 /v2/a-4":                                       "/v2/a-3",
		"/v2/a-5 /v3/a-4":                                       "",
		"/a-5 /b-4":                                             "",
		"/a/5?token=1 /a/4?token=1":                             "",
		"/a/5?X-Amz-Signature=9&n=1 /a/4?X-Amz-Signature=9&n=1": "",
		"/5?Expires=7 /4?Expires=7":                             "",
		"/a /b":                                                 "",
		"/99999999999999999999 /99999999999999999998":           "",
		"/é-3 /é-2":                                             "/é-1",
		"http://other.example/3 /2":                             "",
	} {
		if urls == "/2019/05/09 /2019/05/08" {
			want = "/2019/05/07"
		}
		var g guesser
		last := ""
		for url := range strings.FieldsSeq(urls) {
			if last = url; url[0] == '/' {
				last = site + url
			}
			g.learn(last)
		}
		got, ok := g.after(last)
		require.Equal(t, want != "", ok, urls)
		require.Equal(t, want, strings.TrimPrefix(got, site), urls)
	}
}
