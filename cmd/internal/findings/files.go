package findings

import (
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// A FileTransport answers requests with the files of a feed's directory, as a web server
// of that directory will. A link works only if its target is a file.
type FileTransport struct {
	File string // the feed's file
	URL  string // the URL where it will be served
}

// RoundTrip implements http.RoundTripper. It answers with the file at the URL, or with
// status 404.
func (t *FileTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp := &http.Response{
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: req,
		StatusCode: http.StatusNotFound,
	}
	name, ok := t.path(req.URL)
	if !ok {
		return resp, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return resp, nil
	}
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		_ = f.Close()
		return resp, nil
	}
	resp.StatusCode, resp.Body, resp.ContentLength = http.StatusOK, f, info.Size()
	t.header(resp.Header, info)
	return resp, nil
}

// header adds the header fields a server would add, so check does not report them as
// missing.
func (t *FileTransport) header(h http.Header, info fs.FileInfo) {
	h.Set("Last-Modified", info.ModTime().UTC().Format(http.TimeFormat))
	h.Set("Cache-Control", "no-cache")
}

// path returns the file to be served at a URL.
func (t *FileTransport) path(u *url.URL) (string, bool) {
	feed, err := url.Parse(t.URL)
	if err != nil || u.Scheme != feed.Scheme || !strings.EqualFold(u.Host, feed.Host) {
		return "", false
	}
	if u.Path == feed.Path {
		return t.File, true
	}
	dir := feed.Path[:strings.LastIndexByte(feed.Path, '/')+1]
	rel, err := filepath.Rel(filepath.FromSlash("/"+dir), filepath.FromSlash("/"+u.Path))
	if err != nil {
		return "", false
	}
	return filepath.Join(filepath.Dir(t.File), rel), true
}

// Name returns the name of the file at a URL, or the URL if there is no such file.
func (t *FileTransport) Name(link string) string {
	u, err := url.Parse(link)
	if err != nil {
		return link
	}
	name, ok := t.path(u)
	if _, err := os.Stat(name); !ok || err != nil {
		return link
	}
	return name
}
