package publish

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
)

// placeholder is used as the digest until the digest is known.
const placeholder = "0000000000000000"

// renderArchive returns the name and the text of an archive without
// next-archive. The name contains a digest of everything else, so a name is
// never used for different bytes. As the name of the preceding archive is in
// the text, the digest depends on the whole history.
func (p *Publisher) renderArchive(stem, prev string, head *feedhistory.Document, items []item, updated time.Time) (name, text string, err error) {
	name = stem + "-" + placeholder + p.extension()
	d := feedhistory.NewArchive(head, entriesOf(items), feedhistory.DocumentLinks{
		Self: p.url(name), Current: p.URL(), Prev: p.url(prev),
	})
	d.Deleted, d.Updated = deletionsOf(items), updated
	if text, err = p.render(d); err != nil {
		return "", "", err
	}
	sum := sha256.Sum256([]byte(text))
	digest := hex.EncodeToString(sum[:len(placeholder)/2])
	self := strings.Index(text, `rel="self"`)
	at := strings.Index(text[self:], placeholder+p.extension()+`"`)
	if self < 0 || at < 0 {
		return "", "", fmt.Errorf("%s: no link to itself", name)
	}
	at += self
	text = text[:at] + digest + text[at+len(placeholder):]
	return stem + "-" + digest + p.extension(), text, nil
}

// render writes a document, and reads it again to check it: published documents stay
// for good, so readers must read them as intended.
func (p *Publisher) render(d *feedhistory.Document) (string, error) {
	var b bytes.Buffer
	if err := write(&b, d, p.format()); err != nil {
		return "", err
	}
	text := b.String()
	back, err := parse(text)
	if err != nil {
		return "", err
	}
	if len(back.Entries) != len(d.Entries) || len(back.Deleted) != len(d.Deleted) {
		return "", ErrUnpublishable
	}
	for i, e := range d.Entries {
		if b := back.Entries[i]; b.ID != e.ID || b.WeakID || !b.Updated.Equal(e.Updated) {
			return "", &EntryError{ID: e.ID, Given: e.Updated, Err: ErrUnpublishable}
		}
	}
	for i, t := range d.Deleted {
		if b := back.Deleted[i]; b.Ref != t.Ref || !b.When.Equal(t.When) {
			return "", &EntryError{ID: t.Ref, Given: t.When, Err: ErrUnpublishable}
		}
	}
	return text, nil
}

// setNext sets or removes the next-archive in the text of an archive, and
// changes nothing else: entries are not rendered again (5005#9).
func setNext(text, url string, format feedhistory.Format) (string, error) {
	element := "link"
	if format == feedhistory.RSS {
		element = "atom:link"
	}
	end := strings.Index(text, "<fh:archive ") // the links in the head end here
	if end < 0 {
		return "", fmt.Errorf("no archive: %w", ErrForeign)
	}
	from := end
	line := strings.LastIndexByte(text[:end-1], '\n') + 1
	if strings.HasPrefix(text[line:], "<"+element+` rel="next-archive" `) {
		from = line
	}
	link := ""
	if url != "" {
		link = `<` + element + ` rel="next-archive" href="` + attrEscaper.Replace(url) + "\"/>\n"
	}
	return text[:from] + link + text[end:], nil
}

var attrEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;")
