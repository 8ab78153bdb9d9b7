package download

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Fields are the placeholders of a pattern of names.
type Fields struct {
	Feed  string // Feed is the feed's title.
	Title string // Title is the entry's title.
	Date  time.Time
	ID    string
	URL   string // URL is the address of the file.
	Type  string
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

// Expand returns the path of a file below the directory: each part of it is a name on
// every file system, and none leads out of the directory.
func Expand(pattern string, f Fields) string {
	file, ext := fileOf(f.URL, f.Type)
	date := "undated"
	if !f.Date.IsZero() {
		date = f.Date.UTC().Format(time.DateOnly)
	}
	var parts []string
	for _, part := range strings.Split(pattern, "/") {
		part = strings.NewReplacer("{date}", date, "{title}", f.Title, "{feed}", f.Feed, "{id}", f.ID, "{file}", file).Replace(part)
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

// extensions are those of common media types, for addresses without one.
var extensions = map[string]string{
	"audio/mpeg": ".mp3", "audio/mp3": ".mp3", "audio/mp4": ".m4a", "audio/x-m4a": ".m4a", "audio/aac": ".aac", "audio/ogg": ".ogg", "audio/opus": ".opus", "audio/flac": ".flac",
	"video/mp4": ".mp4", "video/webm": ".webm", "image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp", "application/pdf": ".pdf", "application/epub+zip": ".epub",
}

// fileOf returns the name and the extension of the file at an address.
func fileOf(address, contentType string) (name, ext string) {
	if u, err := url.Parse(address); err == nil {
		name = path.Base(u.Path)
	}
	if ext = path.Ext(name); len(ext) > 6 || strings.ContainsFunc(strings.TrimPrefix(ext, "."), func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) {
		ext = ""
	}
	name = strings.TrimSuffix(name, ext)
	if ext == "" || ext == "." {
		ext = extensions[mediaType(contentType)]
	}
	return name, ext
}

// partName returns the name of an incomplete file.
func partName(f File) string { return ".feedhistory-" + keyOf(f)[:24] + ".part" }

// keyOf identifies a file of a feed.
func keyOf(f File) string {
	sum := sha256.Sum256([]byte(f.Feed + "\n" + f.URL))
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
