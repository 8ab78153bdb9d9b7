package database

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"golang.org/x/text/unicode/norm"
	"golang.org/x/time/rate"
)

// A File is a file to download.
type File struct {
	Feed string `json:"feed"` // Feed is the URL by which the mirror names the feed.
	ID   string `json:"id"`   // ID is the entry's.
	URL  string `json:"url"`
	Type string `json:"type,omitempty"` // Type is the media type given by the feed; "" if it gives none.
	Name string `json:"name"`           // Name is the path below the directory, without a number against a collision.

	Time   time.Time `json:"-"` // Time is the entry's, which the file gets; zero leaves it as it is.
	Of     string    `json:"-"` // Of names the entry, and the file within it. It tells files of signed URLs apart.
	Length int64     `json:"-"` // Length is the number of bytes given by the feed; 0 if it gives none.
	Old    string    `json:"-"` // Old is the path of the copy to replace; "" for none.

	Tags Tags `json:"-"` // Tags are written into an audio file by the Tagger; zero leaves it as it is.
}

// A DownloadResult is the outcome of a File, and its record in JSON.
type DownloadResult struct {
	File
	Saved   string   `json:"file,omitempty"`  // Saved is the path of the file below the directory; "" after an error.
	Bytes   int64    `json:"bytes,omitempty"` // Bytes is the size of the file.
	Error   string   `json:"error,omitempty"` // Error is the text of Err.
	Differs []string `json:"-"`               // Differs says where the file is not as the feed says.
	Err     error    `json:"-"`
}

// A Downloader downloads files into a directory. All fields but Rate must be set.
type Downloader struct {
	Root      *os.Root
	Downloads *Downloads
	Client    *feedhistory.Client
	ClientFor func(feed string) *feedhistory.Client // ClientFor returns a client with a feed's credentials; nil means Client.
	Parallel  int                                   // Parallel is the number of hosts at the same time.
	Rate      *rate.Limiter                         // Rate limits the bytes of a second, in parts of 32 KiB; nil does not.
	MaxBytes  int64                                 // MaxBytes is the maximum size of a file.

	// Each is called after each file, and Read for each part of a file. Neither is called
	// twice at the same time.
	Each func(DownloadResult)
	Read func(bytes int)

	mu    sync.Mutex
	names *names
}

// Download downloads files: those of one host one after the other, and several hosts at
// the same time. It returns an error of the directory or the records, or the context's.
func (d *Downloader) Download(ctx context.Context, files []File) (err error) {
	if d.names, err = namesIn(d.Root); err != nil {
		return err
	}
	hosts, order := map[string][]File{}, []string{}
	for _, f := range files {
		host := feedhistory.HostOf(f.URL)
		if hosts[host] == nil {
			order = append(order, host)
		}
		hosts[host] = append(hosts[host], f)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	free := make(chan struct{}, d.Parallel)
	var all sync.WaitGroup
	for _, host := range order {
		all.Go(func() {
			select {
			case free <- struct{}{}:
				defer func() { <-free }()
				if err := d.host(ctx, hosts[host]); err != nil {
					cancel(err)
				}
			case <-ctx.Done():
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// host downloads the files of one host. If the host asks for a pause, the rest waits for
// another run.
func (d *Downloader) host(ctx context.Context, files []File) error {
	for i, f := range files {
		r := d.file(ctx, f)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if broken, ok := errors.AsType[*localError](r.Err); ok {
			return broken.err
		}
		d.tell(r)
		status, ok := errors.AsType[*feedhistory.FetchError](r.Err)
		if ok && (status.Status == http.StatusTooManyRequests || status.Status == http.StatusServiceUnavailable) {
			for _, left := range files[i+1:] {
				d.tell(DownloadResult{File: left, Err: fmt.Errorf("not requested, because its host asks for a pause: %w", r.Err)})
			}
			return nil
		}
	}
	return nil
}

func (d *Downloader) tell(r DownloadResult) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if r.Err != nil {
		r.Error = show.Detail(r.Err)
	}
	d.Each(r)
}

// A localError is an error of this machine, after which no other file can be saved either.
type localError struct{ err error }

// Error returns the message.
func (e *localError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *localError) Unwrap() error { return e.err }

// file downloads one file.
func (d *Downloader) file(ctx context.Context, f File) (r DownloadResult) {
	r.File = f
	part := partName(f)
	begun, err := d.Downloads.Part(ctx, f)
	if err != nil {
		r.Err = &localError{err}
		return r
	}
	var size int64
	if info, err := d.Root.Stat(part); err == nil && begun != "" {
		size = info.Size()
	}
	resp, err := d.request(ctx, f, size, begun)
	if err != nil {
		r.Err = err
		return r
	}
	defer resp.Body.Close()
	if r.Err = d.save(ctx, f, resp, part); r.Err != nil {
		return r
	}
	info, err := d.Root.Stat(part)
	if err != nil {
		r.Err = &localError{err}
		return r
	}
	if announced := lengthOf(resp); announced >= 0 && info.Size() != announced {
		r.Err = errors.Join(fmt.Errorf("the server announced %d bytes, and sent %d: nothing was saved", announced, info.Size()), d.Root.Remove(part))
		return r
	}
	r.Differs = differences(f, info.Size(), resp.Header.Get("Content-Type"))
	if err := d.tag(ctx, part, f); err != nil {
		r.Differs = append(r.Differs, err.Error())
	}
	digest, size, err := digestOf(d.Root, part) // of the bytes on the disk, whoever wrote them
	r.Bytes = size
	if err == nil {
		r.Saved, err = d.settle(part, f)
	}
	if err == nil {
		if !f.Time.IsZero() {
			_ = d.Root.Chtimes(r.Saved, f.Time, f.Time) // a disk without times is no reason to fail
		}
		err = d.Downloads.Take(ctx, f, Saved{r.Saved, r.Bytes, digest})
	}
	if err != nil {
		r.Err = &localError{err}
	}
	return r
}

// save writes an answer to the temporary file, which it syncs.
func (d *Downloader) save(ctx context.Context, f File, resp *http.Response, part string) error {
	flags := os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	if resp.StatusCode == http.StatusPartialContent {
		flags = os.O_WRONLY | os.O_APPEND
	}
	if err := d.Downloads.Begin(ctx, f, validatorOf(resp.Header)); err != nil {
		return &localError{err}
	}
	out, err := d.Root.OpenFile(part, flags, 0o644)
	if err != nil {
		return &localError{err}
	}
	n, err := io.Copy(&counter{ctx, out, d}, io.LimitReader(resp.Body, d.MaxBytes+1))
	if failed := errors.Join(out.Sync(), out.Close()); failed != nil {
		return &localError{failed}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case n > d.MaxBytes:
		return errors.Join(fmt.Errorf("larger than %d bytes", d.MaxBytes), d.Root.Remove(part))
	case err != nil:
		if local, ok := errors.AsType[*localError](err); ok {
			return local
		}
		return ErrCut
	}
	return nil
}

// settle gives a complete file its name: that of the copy to replace, if it is still there.
func (d *Downloader) settle(part string, f File) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if info, err := d.Root.Stat(f.Old); f.Old != "" && err == nil && info.Mode().IsRegular() {
		return f.Old, d.Root.Rename(part, f.Old)
	}
	name := d.names.free(f.Name)
	if i := strings.LastIndexByte(name, '/'); i > 0 {
		if err := d.Root.MkdirAll(name[:i], 0o755); err != nil {
			return "", err
		}
	}
	if err := d.Root.Rename(part, name); err != nil {
		return "", err
	}
	d.names.take(name)
	return name, nil
}

// ErrCut reports an interrupted download. Another run continues it.
var ErrCut = errors.New("cut short; another run continues there")

// A counter counts the bytes written to a file.
type counter struct {
	ctx context.Context
	out *os.File
	d   *Downloader
}

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	if c.d.Rate != nil {
		if err := c.d.Rate.WaitN(c.ctx, len(p)); err != nil {
			return 0, err
		}
	}
	n, err := c.out.Write(p)
	c.d.mu.Lock()
	c.d.Read(n)
	c.d.mu.Unlock()
	if err != nil {
		err = &localError{err}
	}
	return n, err
}

// request requests a file, from the byte at which an earlier download ended if the file is
// still the same.
func (d *Downloader) request(ctx context.Context, f File, size int64, validator string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL, nil)
	if err != nil || req.URL.Host == "" || req.URL.Scheme != "https" && req.URL.Scheme != "http" || req.URL.User != nil {
		return nil, errors.New("not a downloadable address")
	}
	if size > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", size))
		req.Header.Set("If-Range", validator)
	}
	resp, err := cmp.Or(d.ClientFor(f.Feed), d.Client).HTTPClient().Do(req)
	if err != nil {
		if broken, ok := errors.AsType[*url.Error](err); ok {
			err = broken.Err // the message must not contain a secret of the address
		}
		return nil, err
	}
	switch {
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && size > 0:
		_ = resp.Body.Close()
		return d.request(ctx, f, 0, "")
	case resp.StatusCode == http.StatusPartialContent && size > 0 && beginsAt(resp.Header.Get("Content-Range"), size),
		resp.StatusCode == http.StatusOK:
	case resp.StatusCode == http.StatusPartialContent && size > 0:
		_ = resp.Body.Close()
		return d.request(ctx, f, 0, "")
	default:
		_ = resp.Body.Close()
		return nil, feedhistory.NewFetchError(resp)
	}
	if isPage(resp.Header.Get("Content-Type")) && isMedia(f.Type) {
		_ = resp.Body.Close()
		return nil, errors.New("the server sends a web page instead of the file; does it require a login?")
	}
	return resp, nil
}

// lengthOf returns the length of the whole file, as its server announces it; -1 if it does
// not.
func lengthOf(resp *http.Response) int64 {
	if resp.StatusCode != http.StatusPartialContent {
		return resp.ContentLength
	}
	_, total, _ := strings.Cut(resp.Header.Get("Content-Range"), "/")
	if n, err := strconv.ParseInt(total, 10, 64); err == nil {
		return n
	}
	return -1
}

// beginsAt reports whether a Content-Range begins at a byte.
func beginsAt(contentRange string, at int64) bool {
	return strings.HasPrefix(contentRange, "bytes "+strconv.FormatInt(at, 10)+"-")
}

// validatorOf returns the validator for resuming a download; "" if none identifies the
// bytes.
func validatorOf(h http.Header) string {
	if tag := h.Get("ETag"); tag != "" && !strings.HasPrefix(tag, "W/") {
		return tag
	}
	return h.Get("Last-Modified")
}

func isPage(contentType string) bool { return mediaType(contentType) == "text/html" }

func isMedia(contentType string) bool {
	kind, _, _ := strings.Cut(mediaType(contentType), "/")
	return kind == "audio" || kind == "video" || kind == "image"
}

func mediaType(contentType string) string {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		return strings.ToLower(strings.TrimSpace(contentType))
	}
	return kind
}

// differences says where a file is not as the feed says.
func differences(f File, size int64, contentType string) (all []string) {
	if f.Length > 0 && f.Length != size {
		all = append(all, fmt.Sprintf("the feed says %d bytes, the file has %d", f.Length, size))
	}
	if got, want := mediaType(contentType), mediaType(f.Type); want != "" && got != "" && got != want && got != "application/octet-stream" && got != "binary/octet-stream" {
		all = append(all, fmt.Sprintf("the feed says %s, the server %s", want, got))
	}
	return all
}

// Downloads are a database's records of downloads.
type Downloads struct{ DB *sql.DB }

const downloadsSchema = `CREATE TABLE IF NOT EXISTS feedhistory_downloads (
	key TEXT PRIMARY KEY, feed TEXT NOT NULL, url TEXT NOT NULL, file TEXT NOT NULL, size BIGINT NOT NULL, validator TEXT NOT NULL, taken TEXT NOT NULL)`

// Open creates the table, if the database does not have it.
func (r *Downloads) Open(ctx context.Context) error {
	_, err := r.DB.ExecContext(ctx, downloadsSchema)
	return err
}

// Saved is the record of a downloaded file; zero if the file has not been downloaded.
type Saved struct {
	File   string // File is the path below the directory.
	Size   int64  // Size is in bytes.
	Digest string // Digest is the file's SHA-256; "" in records of earlier versions.
}

// Damage says how a file differs from what was downloaded; "" if it does not, or is not
// there any more. With read, it reads the file; otherwise it only looks whether the file
// has become shorter. The error is the file system's.
func (s Saved) Damage(root *os.Root, read bool) (string, error) {
	info, err := root.Stat(s.File)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if info.Size() < s.Size || read && info.Size() != s.Size {
		return fmt.Sprintf("has %d of %d bytes", info.Size(), s.Size), nil
	}
	if !read || s.Digest == "" {
		return "", nil
	}
	digest, _, err := digestOf(root, s.File)
	if err == nil && digest != s.Digest {
		return "is not the file that was downloaded", nil
	}
	return "", err
}

// digestOf returns the SHA-256 of a file, and its size.
func digestOf(root *os.Root, name string) (digest string, size int64, err error) {
	f, err := root.Open(name)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	h := sha256.New()
	size, err = io.Copy(h, f)
	return "sha256:" + hex.EncodeToString(h.Sum(nil)), size, err
}

// Taken returns the record of a downloaded file. Records of earlier versions are found by
// the URL as it was.
func (r *Downloads) Taken(ctx context.Context, f File) (s Saved, err error) {
	err = r.DB.QueryRowContext(ctx, "SELECT file, size, validator FROM feedhistory_downloads WHERE key IN ($1, $2) ORDER BY taken DESC LIMIT 1",
		keyOf(f), keyOf(File{Feed: f.Feed, URL: f.URL})).Scan(&s.File, &s.Size, &s.Digest)
	if errors.Is(err, sql.ErrNoRows) || err == nil && s.File == "" {
		return Saved{}, nil
	}
	return s, err
}

// Part returns the validator of an interrupted download; "" if there is none to resume.
func (r *Downloads) Part(ctx context.Context, f File) (validator string, err error) {
	err = r.DB.QueryRowContext(ctx, "SELECT validator FROM feedhistory_downloads WHERE key = $1 AND file = ''", keyOf(f)).Scan(&validator)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return validator, err
}

// Begin records the beginning of a download.
func (r *Downloads) Begin(ctx context.Context, f File, validator string) error {
	return r.put(ctx, f, Saved{Digest: validator})
}

// Take records a downloaded file.
func (r *Downloads) Take(ctx context.Context, f File, s Saved) error {
	return r.put(context.WithoutCancel(ctx), f, s)
}

// put stores a record. That of a file under way has no name, and the validator of its
// server as its digest.
func (r *Downloads) put(ctx context.Context, f File, s Saved) error {
	_, err := r.DB.ExecContext(ctx, `INSERT INTO feedhistory_downloads (key, feed, url, file, size, validator, taken)
		VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (key) DO UPDATE SET file = excluded.file, size = excluded.size, validator = excluded.validator, taken = excluded.taken`,
		keyOf(f), f.Feed, f.URL, s.File, s.Size, s.Digest, time.Now().UTC().Format(time.RFC3339))
	return err
}

// mostName is the maximum length of one part of a path in bytes. Every file system allows
// it, with a number and an extension.
const mostName = 180

// CheckPattern refuses unknown names in a pattern.
func CheckPattern(pattern string) error {
	rest := strings.NewReplacer("{date}", "", "{title}", "", "{feed}", "", "{id}", "", "{file}", "").Replace(pattern)
	if strings.ContainsAny(rest, "{}") {
		return errors.New("a name can have {date}, {title}, {feed}, {id} and {file}: " + pattern)
	}
	if pattern == "" {
		return errors.New("a name cannot be empty")
	}
	return nil
}

// Expand returns the path of a file below the directory, given the titles of its feed and its
// entry: each part of it is a name on every file system, and none leads out of the directory.
func Expand(pattern string, f File, feed, title string) string {
	file, ext := fileOf(f.URL, f.Type)
	date := "undated"
	if !f.Time.IsZero() {
		date = f.Time.UTC().Format(time.DateOnly)
	}
	var parts []string
	for _, part := range strings.Split(pattern, "/") {
		part = strings.NewReplacer("{date}", date, "{title}", title, "{feed}", feed, "{id}", f.ID, "{file}", file).Replace(part)
		if part = safe(part); part != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		parts = []string{"untitled"}
	}
	return path.Join(parts...) + ext
}

// reserved are the names Windows keeps for devices.
var reserved = []string{"con", "prn", "aux", "nul", "com1", "com2", "com3", "com4", "com5", "com6", "com7", "com8", "com9",
	"lpt1", "lpt2", "lpt3", "lpt4", "lpt5", "lpt6", "lpt7", "lpt8", "lpt9"}

// safe returns text as a name on every file system; "" if nothing is left of it.
func safe(text string) string {
	text = norm.NFC.String(strings.ToValidUTF8(text, ""))
	text = strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune(`<>:"/\|?*`, r):
			return '_'
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r), unicode.Is(unicode.Cf, r), r == utf8.RuneError:
			return -1
		}
		return r
	}, text)
	text = strings.Join(strings.Fields(text), " ")
	for len(text) > mostName {
		_, n := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-n]
	}
	text = strings.TrimRight(text, ". ")
	if strings.HasPrefix(text, ".") {
		text = "_" + text
	}
	base, _, _ := strings.Cut(strings.ToLower(text), ".")
	if slices.Contains(reserved, base) {
		text = "_" + text
	}
	return text
}

// extensions are those of media types. A file gets an extension of its media type, whatever
// its address has: an episode is no program, for whoever opens it. The first is for
// addresses with another one.
var extensions = map[string][]string{
	"audio/mpeg": {".mp3", ".mp2", ".mpga"}, "audio/mp3": {".mp3"}, "audio/mp4": {".m4a", ".mp4", ".m4b", ".aac"}, "audio/x-m4a": {".m4a", ".m4b", ".mp4"}, "audio/m4a": {".m4a", ".m4b"},
	"audio/aac": {".aac", ".m4a"}, "audio/x-aac": {".aac"}, "audio/ogg": {".ogg", ".oga", ".opus", ".spx"}, "application/ogg": {".ogg", ".oga", ".ogv", ".opus"}, "audio/opus": {".opus", ".ogg"},
	"audio/flac": {".flac"}, "audio/x-flac": {".flac"}, "audio/wav": {".wav"}, "audio/x-wav": {".wav"}, "audio/webm": {".webm", ".weba"}, "audio/midi": {".mid", ".midi"},
	"video/mp4": {".mp4", ".m4v"}, "video/x-m4v": {".m4v", ".mp4"}, "video/mpeg": {".mpg", ".mpeg"}, "video/quicktime": {".mov", ".qt"}, "video/webm": {".webm"}, "video/ogg": {".ogv", ".ogg"},
	"video/x-matroska": {".mkv"}, "video/x-msvideo": {".avi"}, "image/jpeg": {".jpg", ".jpeg"}, "image/png": {".png"}, "image/gif": {".gif"}, "image/webp": {".webp"}, "image/avif": {".avif"},
	"application/pdf": {".pdf"}, "application/epub+zip": {".epub"}, "application/zip": {".zip", ".epub", ".cbz"}, "application/gzip": {".gz", ".tgz"}, "application/x-bittorrent": {".torrent"},
	"text/plain": {".txt", ".srt", ".vtt", ".md", ".asc", ".csv"}, "text/vtt": {".vtt"}, "application/x-subrip": {".srt"}, "text/csv": {".csv"}, "text/html": {".html", ".htm"}, "application/json": {".json"},
}

// harmless are the extensions of a file whose media type is unknown: all of the table but
// those of pages, which run scripts.
var harmless = func() map[string]bool {
	all := map[string]bool{}
	for kind, list := range extensions {
		for _, ext := range list {
			all[ext] = kind != "text/html"
		}
	}
	return all
}()

// fileOf returns the name of the file at an address, and the extension for it. A file of
// unknown type is .bin.
func fileOf(address, contentType string) (name, ext string) {
	if u, err := url.Parse(address); err == nil {
		name = path.Base(u.Path)
	}
	ext = path.Ext(name)
	if len(ext) > 6 {
		ext = ""
	}
	name = strings.TrimSuffix(name, ext)
	allowed := extensions[mediaType(contentType)]
	switch plain := strings.ToLower(ext); {
	case slices.Contains(allowed, plain), allowed == nil && harmless[plain]:
		return name, ext
	case allowed != nil:
		return name, allowed[0]
	}
	return name, ".bin"
}

// partName returns the name of an incomplete file.
func partName(f File) string { return ".feedhistory-" + keyOf(f)[:24] + ".part" }

// keyOf identifies a file of a feed: by its URL, or, if that is signed and so another one
// at each poll, by its entry and the rest of the URL.
func keyOf(f File) string {
	name := f.URL
	if address := feedhistory.Unsigned(f.URL); address != f.URL && f.Of != "" {
		name = f.Of + "\n" + address
	}
	sum := sha256.Sum256([]byte(f.Feed + "\n" + name))
	return hex.EncodeToString(sum[:])
}

// names are the names in a directory, as seen by a case-insensitive file system.
type names struct{ taken map[string]bool }

func namesIn(root *os.Root) (*names, error) {
	n := &names{map[string]bool{}}
	err := fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n.take(name)
		}
		return err
	})
	return n, err
}

func (n *names) take(name string) { n.taken[folded(name)] = true }

// free returns an unused name: the given one, or one with a number.
func (n *names) free(name string) string {
	ext := path.Ext(name)
	for i, candidate := 2, name; ; i++ {
		if !n.taken[folded(candidate)] {
			return candidate
		}
		candidate = fmt.Sprintf("%s (%d)%s", strings.TrimSuffix(name, ext), i, ext)
	}
}

func folded(name string) string { return strings.ToLower(norm.NFKC.String(name)) }
