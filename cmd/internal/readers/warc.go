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
	room   int64            // how many bytes may still be decompressed
	number int              // of the current record
	at     int64            // where it begins, decompressed
	block  io.LimitedReader // the rest of its content
}

// A countingReader counts the bytes it has read, up to a maximum.
type countingReader struct {
	io.Reader
	n, most int64
}

// Read implements io.Reader.
func (r *countingReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.n += int64(n); r.n > r.most {
		err = errExpands
	}
	return n, err
}

// A file may be decompressed to a megabyte and so many times its size, like a fetched
// document; and so may the answers in it once more.
const (
	leastExpanded  = 1 << 20
	expansionRatio = 200
)

var errExpands = fmt.Errorf("it is compressed to less than a %dth", expansionRatio)

// mostWARCHeader is the maximum length of a record's header.
const mostWARCHeader = 64 << 10

// newWARC reads the WARC file in a reader of so many bytes.
func newWARC(r io.Reader, size int64) (*warcReader, error) {
	in, most := bufio.NewReader(r), leastExpanded+expansionRatio*size
	w := &warcReader{read: countingReader{Reader: in, most: most}, room: most}
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

// isWARC reports whether a file is a WARC file, by its beginning.
func isWARC(start []byte) bool {
	const magic = "WARC/"
	if isGzip(start) {
		z, err := gzip.NewReader(bytes.NewReader(start))
		if err != nil {
			return false
		}
		start, _ = io.ReadAll(io.LimitReader(z, int64(len(magic))))
	}
	return bytes.HasPrefix(start, []byte(magic))
}

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
		body, err = io.ReadAll(io.LimitReader(z, min(mostSaved, w.room+1)))
		if w.room -= int64(len(body)); w.room < 0 {
			return nil, nil, errExpands
		}
		return resp.Header, body, err
	}
	return resp.Header, body, nil
}

// A capture is a feed document in a WARC file, or damage there.
type capture struct {
	at     time.Time
	doc    *feedhistory.Document // nil if none of it could be read
	damage error
}

// item returns the document with its feed; with none if it belongs to none of those wanted.
func (c *capture) item(feeds feedGroups) Item {
	found := Item{Damage: c.damage}
	if c.doc != nil {
		found.Feed, found.Title = feeds.feed[bare(c.doc.URL)], c.doc.Title
		found.Document = &Saved{Document: c.doc, At: c.at}
	}
	return found
}

// readWARC yields the feed documents in a WARC file. Damage of a record ends it.
func readWARC(ctx context.Context, name string, yield func(capture) error) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	w, damage := newWARC(f, info.Size())
	for damage == nil && ctx.Err() == nil {
		var header textproto.MIMEHeader
		if header, damage = w.next(); damage != nil {
			break
		}
		found := w.capture(header)
		if found.damage != nil {
			found.damage = fmt.Errorf("%s: record %d: %w", name, w.number, found.damage)
		}
		if found.doc != nil || found.damage != nil {
			if err := yield(found); err != nil {
				return err
			}
		}
	}
	if damage != nil && damage != io.EOF {
		return yield(capture{damage: fmt.Errorf("%s: %w", name, damage)})
	}
	return ctx.Err()
}

// capture returns the feed document of the current record; the zero value for another record.
func (w *warcReader) capture(header textproto.MIMEHeader) (c capture) {
	url := strings.Trim(header.Get("WARC-Target-URI"), "<>") // wget writes them
	if header.Get("WARC-Type") != "response" || !isWeb(url) {
		return c
	}
	fields, body, err := w.answer()
	if err == nil && looksLikeFeed(body) {
		c.doc, err = feedhistory.Parser{Header: fields}.Parse(bytes.NewReader(body), url)
	}
	if parse, ok := errors.AsType[*feedhistory.ParseError](err); !ok || parse.Reason != feedhistory.ReasonNotFeed {
		c.damage = err
	}
	c.at, _ = time.Parse(time.RFC3339Nano, header.Get("WARC-Date"))
	return c
}

// feedsOf returns the feeds of the documents in WARC files: the given ones or, if none are
// given, those the documents name at their own hosts.
func feedsOf(ctx context.Context, files []savedFile, given []string) (feedGroups, error) {
	g, roots := feedGroups{map[string]string{}, map[string]map[string]bool{}, len(given) > 0}, slices.Clone(given)
	for _, f := range files {
		if !f.isWARC {
			continue
		}
		err := readWARC(ctx, f.name, func(found capture) error {
			if found.doc == nil {
				return nil
			}
			g.add(found.doc)
			if self := selfOf(found.doc); len(given) == 0 && feedhistory.HostOf(self) == feedhistory.HostOf(found.doc.URL) {
				roots = append(roots, self)
			} else if len(given) == 0 {
				roots = append(roots, found.doc.URL)
			}
			return nil
		})
		if err != nil {
			return g, err
		}
	}
	for _, root := range roots {
		g.assign(bare(root), root)
	}
	return g, nil
}

// feedGroups tells which feed a document belongs to. Addresses are bare.
type feedGroups struct {
	feed  map[string]string          // the feed of a document
	links map[string]map[string]bool // the documents of the same feed
	given bool                       // the feeds are given, so their documents may be at any host
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
		if to == at || !isHost && !g.given {
			return
		}
		if g.link(at, to); isHost {
			g.link(to, at)
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

func (g feedGroups) link(from, to string) {
	if g.links[from] == nil {
		g.links[from] = map[string]bool{}
	}
	g.links[from][to] = true
}

// assign assigns a document to a feed, with those that belong to the same.
func (g feedGroups) assign(at, feed string) {
	if g.feed[at] != "" {
		return
	}
	g.feed[at] = feed
	for to := range g.links[at] {
		g.assign(to, feed)
	}
}
