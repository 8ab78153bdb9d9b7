package feedtest

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMain(m *testing.M) { Main(m) }

const example = `A site with everything.
-- /feed.atom --
<feed>{{site}} {{count}} {{repeat 3 ab}}{{repeat 2 c%d}}</feed>
-- /feed.atom?page=2 --
Last-Modified: Fri, 30 May 2003 11:06:42 GMT
Link: <{{site}}/feed.atom>; rel="first"

<feed>2</feed>
-- /feed.atom#3 --
<feed>changed</feed>
-- /moved.atom --
Status: 301
Location: {{other}}/feed.atom
-- /cut.atom --
<feed>{{cut}}</feed>
-- /abort.atom --
<feed>{{abort}}</feed>
-- /none.atom --
Status: none
-- /zip.rss --
X-Gzip: true

<rss/>
-- want --
nothing
`

func TestArchive(t *testing.T) {
	a := Parse(example)
	require.Equal(t, "A site with everything.\n", a.Comment)
	want, ok := a.File("want")
	require.True(t, ok)
	require.Equal(t, "nothing\n", want)
	_, ok = a.File("/nowhere")
	require.False(t, ok)
	require.Equal(t, example, a.String())
	a.Set("want", "something\n")
	a.Set("more", "")
	require.Equal(t, strings.Replace(example, "nothing\n", "something\n-- more --\n", 1), a.String())
}

func TestSite(t *testing.T) {
	s := Serve(t, example)
	client := &http.Client{
		Transport:     new(http.Transport),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer client.CloseIdleConnections()
	get := func(url string) (*http.Response, string, error) {
		resp, err := client.Get(url)
		if err != nil {
			return nil, "", err
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		return resp, string(body), err
	}

	resp, body, err := get(s.URL + "/feed.atom")
	require.NoError(t, err)
	require.Equal(t, "<feed>"+s.URL+" 1 abababc1c2</feed>\n", body)
	require.Equal(t, "application/atom+xml", resp.Header.Get("Content-Type"))

	resp, body, err = get(s.URL + "/feed.atom?page=2")
	require.NoError(t, err)
	require.Equal(t, "<feed>2</feed>\n", body)
	require.Equal(t, "<"+s.URL+"/feed.atom>; rel=\"first\"", resp.Header.Get("Link"))

	_, body, err = get(s.URL + "/feed.atom?page=3") // ignores the query
	require.NoError(t, err)
	require.Equal(t, "<feed>"+s.URL+" 2 abababc1c2</feed>\n", body)
	_, body, err = get(s.Other + "/feed.atom") // the third request
	require.NoError(t, err)
	require.Equal(t, "<feed>changed</feed>\n", body)

	resp, _, err = get(s.URL + "/moved.atom")
	require.NoError(t, err)
	require.Equal(t, http.StatusMovedPermanently, resp.StatusCode)
	require.Equal(t, s.Other+"/feed.atom", resp.Header.Get("Location"))

	resp, body, err = get(s.URL + "/cut.atom")
	require.NoError(t, err, "a cut looks like a normal end")
	require.Equal(t, "<feed>", body)
	require.EqualValues(t, -1, resp.ContentLength)

	resp, body, err = get(s.URL + "/abort.atom")
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	require.Equal(t, "<feed>", body)
	require.EqualValues(t, len("<feed></feed>\n"), resp.ContentLength)

	_, _, err = get(s.URL + "/none.atom")
	require.True(t, errors.Is(err, io.EOF), "%v", err)

	resp, body, err = get(s.URL + "/zip.rss")
	require.NoError(t, err)
	require.True(t, resp.Uncompressed)
	require.Equal(t, "<rss/>\n", body)
	require.Equal(t, "application/rss+xml", resp.Header.Get("Content-Type"))

	resp, _, err = get(s.URL + "/nowhere")
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, resp.StatusCode)

	requests := s.Requests()
	require.Equal(t, s.URL+"/feed.atom", requests[0].URL)
	require.Equal(t, "/feed.atom?page=2", s.Path(requests[1].URL))
	require.Equal(t, "{{other}}/feed.atom", s.Path(requests[3].URL))
	require.Equal(t, http.MethodGet, requests[0].Method)
}
