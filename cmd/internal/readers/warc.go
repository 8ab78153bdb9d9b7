package readers

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/textproto"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A warcReader reads the records of a WARC file (ISO 28500), which may be compressed as a
// whole or, as most are, record by record.
type warcReader struct {
	in     *bufio.Reader
	read   countingReader
	number int              // of the current record
	at     int64            // where it begins, decompressed
	block  io.LimitedReader // the rest of its content
}

// A countingReader counts the bytes it has read.
type countingReader struct {
	io.Reader
	n int64
}

// Read implements io.Reader.
func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.n += int64(n)
	return n, err
}

// mostWARCHeader is the maximum length of a record's header.
const mostWARCHeader = 64 << 10

func newWARC(r io.Reader) (*warcReader, error) {
	in := bufio.NewReader(r)
	w := &warcReader{read: countingReader{Reader: in}}
	if magic, _ := in.Peek(2); isGzip(magic) {
		z, err := gzip.NewReader(in)
		if err != nil {
			return nil, err
		}
		w.read.Reader = z
	}
	w.in = bufio.NewReaderSize(&w.read, mostWARCHeader)
	w.block.R = w.in
	return w, nil
}

func isGzip(data []byte) bool { return bytes.HasPrefix(data, []byte("\x1f\x8b")) }

// next returns the header of the next record, whose block is then the content; io.EOF at the
// end. Other errors name the record and its place.
func (w *warcReader) next() (textproto.MIMEHeader, error) {
	_, err := io.Copy(io.Discard, &w.block)
	if err == nil && w.block.N > 0 {
		err = io.ErrUnexpectedEOF
	}
	for err == nil {
		var b byte
		if b, err = w.in.ReadByte(); err == nil && b != '\r' && b != '\n' {
			_ = w.in.UnreadByte()
			break
		}
	}
	if err == io.EOF {
		return nil, io.EOF
	}
	var header textproto.MIMEHeader
	if err == nil {
		w.number, w.at = w.number+1, w.read.n-int64(w.in.Buffered())
		header, err = w.header()
	}
	if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the file ends within it")
	}
	if err != nil {
		err = fmt.Errorf("record %d, which begins at byte %d: %w", w.number, w.at, err)
	}
	return header, err
}

// header reads a record's header.
func (w *warcReader) header() (textproto.MIMEHeader, error) {
	header := textproto.MIMEHeader{}
	for read, first := 0, true; ; first = false {
		line, err := w.in.ReadSlice('\n')
		if read += len(line); errors.Is(err, bufio.ErrBufferFull) || read > mostWARCHeader {
			err = fmt.Errorf("its header has more than %d bytes", mostWARCHeader)
		}
		if err != nil {
			return nil, err
		}
		text := strings.TrimSpace(string(line))
		name, value, _ := strings.Cut(text, ":")
		switch {
		case first && !strings.HasPrefix(text, "WARC/"):
			return nil, errors.New("this is not the beginning of a record")
		case text != "" && !first:
			header.Add(name, strings.TrimSpace(value))
		case text == "":
			w.block.N, err = strconv.ParseInt(header.Get("Content-Length"), 10, 64)
			if err != nil || w.block.N < 0 {
				w.block.N = 0
				return nil, fmt.Errorf("its length is %q", header.Get("Content-Length"))
			}
			return header, nil
		}
	}
}

// answer returns the header and the decoded body of a successful HTTP answer; no body for
// other content. Some crawlers store a body decoded, under a header that says otherwise.
func (w *warcReader) answer() (http.Header, []byte, error) {
	block, err := io.ReadAll(io.LimitReader(&w.block, mostSaved))
	if err != nil {
		return nil, nil, err
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(block)), nil)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil, nil, nil
	}
	_, body, _ := bytes.Cut(block, []byte("\r\n\r\n"))
	if len(resp.TransferEncoding) > 0 {
		if whole, err := io.ReadAll(resp.Body); err == nil {
			body = whole
		}
	}
	if isGzip(body) {
		z, err := gzip.NewReader(bytes.NewReader(body))
		if err != nil {
			return nil, nil, err
		}
		body, err = io.ReadAll(io.LimitReader(z, mostSaved))
		return resp.Header, body, err
	}
	return resp.Header, body, nil
}

// A capture is an answer in a WARC file: the document of a feed or a page; or damage there.
type capture struct {
	url    string
	at     time.Time
	header http.Header
	body   []byte
	doc    *feedhistory.Document // nil if it is no feed
	isPage bool                  // a whole page in HTML
	damage error
}

// readWARC yields the documents of feeds and the pages in a WARC file. Damage of a record
// ends it.
func readWARC(ctx context.Context, file io.Reader, yield func(capture) error) error {
	w, err := newWARC(file)
	for err == nil && ctx.Err() == nil {
		var header textproto.MIMEHeader
		if header, err = w.next(); err != nil {
			break
		}
		found := capture{url: strings.Trim(header.Get("WARC-Target-URI"), "<>")} // wget writes them
		if header.Get("WARC-Type") != "response" || !isWeb(found.url) {
			continue
		}
		found.header, found.body, found.damage = w.answer()
		if found.damage == nil && looksLikeFeed(found.body) {
			found.doc, found.damage = feedhistory.Parser{Header: found.header}.Parse(bytes.NewReader(found.body), found.url)
		}
		if parse, ok := errors.AsType[*feedhistory.ParseError](found.damage); ok && parse.Reason == feedhistory.ReasonNotFeed {
			found.damage = nil
		}
		if found.damage != nil {
			found.damage = fmt.Errorf("record %d: %w", w.number, found.damage)
		}
		isWhole := found.damage == nil && w.block.N == 0 && header.Get("WARC-Truncated") == ""
		found.isPage = isWhole && found.doc == nil && strings.Contains(found.header.Get("Content-Type"), "html")
		found.at, _ = time.Parse(time.RFC3339Nano, header.Get("WARC-Date"))
		if found.doc != nil || found.isPage || found.damage != nil {
			if err := yield(found); err != nil {
				return err
			}
		}
	}
	if err != nil && err != io.EOF {
		return yield(capture{damage: err})
	}
	return ctx.Err()
}

func readCaptures(ctx context.Context, names []string, yield func(capture) error) error {
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		err = readWARC(ctx, f, func(found capture) error {
			if found.damage != nil {
				found.damage = fmt.Errorf("%s: %w", name, found.damage)
			}
			return yield(found)
		})
		f.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// readWARCs takes the documents of the given feeds from WARC files, and then the posts among
// the pages of their sites; of all feeds if none are given. It reads the files twice, because
// a document may come before those that link to it.
func readWARCs(ctx context.Context, s *Source, _ string, yield func(Item) error) (err error) {
	names, roots := append([]string{s.Name}, s.Files...), slices.Clone(s.Feeds)
	g := feedGroups{map[string]string{}, map[string][]string{}, len(roots) > 0}
	pages, err := newSavedPages()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pages.close()) }()
	for _, feed := range s.Feeds {
		if err := pages.expectMirrored(ctx, s.Mirrored, feed); err != nil {
			return err
		}
	}
	err = readCaptures(ctx, names, func(found capture) error {
		if found.doc != nil {
			g.add(found.doc)
			pages.expect(found.doc)
			if self := selfOf(found.doc); len(s.Feeds) == 0 && feedhistory.HostOf(self) == feedhistory.HostOf(found.doc.URL) {
				roots = append(roots, self)
			} else if len(s.Feeds) == 0 {
				roots = append(roots, found.doc.URL)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, root := range roots {
		g.assign(bare(root), root)
	}
	n := 0
	err = readCaptures(ctx, names, func(found capture) error {
		item := Item{Damage: found.damage}
		if found.doc != nil {
			item.Feed, item.Title = g.feed[bare(found.doc.URL)], found.doc.Title
			item.Document = &Saved{Document: found.doc, Older: n, At: found.at}
			n++
		}
		if err := pages.add(&found, item.Feed); err != nil || found.isPage {
			return err
		}
		return yield(item)
	})
	if err != nil {
		return err
	}
	return pages.posts(ctx, yield)
}

// feedGroups tells which feed a document belongs to. Addresses are bare.
type feedGroups struct {
	feed  map[string]string   // the feed of a document
	links map[string][]string // the documents of the same feed
	given bool                // the feeds are given, so their documents may be at any host
}

// add notes a document. It belongs to the same feed as those it links to, and as that at its
// address without a query, as the pages of much software do. At another host, they only
// belong to a given feed, and it never to theirs: anybody can name another's feed.
func (g feedGroups) add(doc *feedhistory.Document) {
	at := bare(doc.URL)
	path, _, _ := strings.Cut(doc.URL, "?")
	join := func(url string) {
		to := bare(url)
		isHost := feedhistory.HostOf(url) == feedhistory.HostOf(doc.URL)
		if to == at || slices.Contains(g.links[at], to) || !isHost && !g.given {
			return
		}
		if g.links[at] = append(g.links[at], to); isHost {
			g.links[to] = append(g.links[to], at)
		}
	}
	join(path)
	for _, rel := range []string{
		"current", "self", "first", "next",
		"previous", "prev-archive", "next-archive",
	} {
		if link, ok := doc.Links.Rel(rel); ok {
			join(link.Href)
		}
	}
}

// assign assigns a document to a feed, with those that belong to the same.
func (g feedGroups) assign(at, feed string) {
	if g.feed[at] != "" {
		return
	}
	g.feed[at] = feed
	for _, to := range g.links[at] {
		g.assign(to, feed)
	}
}
