package show

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html"
	"io"
	"net/netip"
	"net/url"
	"strings"

	"github.com/emersion/go-message/mail"
	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// Mail returns an entry as a mail message (RFC 5322), as text and as HTML, and a name for its
// file. The same entry of a feed always has the same name and Message-ID, so a second copy
// replaces the first, or is recognised.
func Mail(f *mirror.Feed, r *mirror.Record, e *feedhistory.Entry) (name string, message []byte, err error) {
	sum := sha256.Sum256([]byte(r.Feed + "\n" + r.ID))
	key := hex.EncodeToString(sum[:16])
	host := "localhost"
	if u, err := url.Parse(f.URL); err == nil && u.Hostname() != "" {
		if _, err := netip.ParseAddr(u.Hostname()); err != nil { // an address is no domain of a mail
			host = u.Hostname()
		}
	}
	var h mail.Header
	h.SetDate(r.Time())
	h.SetSubject(cmp.Or(terminal.Clean(e.Title().Plain()), terminal.Cut(terminal.Clean(e.Content().Plain()), untitled), "(no title)"))
	h.SetAddressList("From", []*mail.Address{{Name: cmp.Or(terminal.Clean(f.Named), terminal.Clean(f.Title), host), Address: "feedhistory@" + host}})
	h.SetMessageID(key + "@feedhistory.invalid")
	content := e.Content()
	if content.Body == "" {
		content = e.Summary()
	}
	text, markup := content.Plain(), content.HTML()
	for _, l := range e.Links {
		switch l.Rel {
		case feedhistory.RelAlternate, feedhistory.RelEnclosure:
			text += "\n\n" + l.Href
			markup += fmt.Sprintf("\n<p><a href=\"%[1]s\">%[1]s</a></p>", html.EscapeString(l.Href))
		}
	}
	var out bytes.Buffer
	parts, err := mail.CreateInlineWriter(&out, h)
	if err != nil {
		return "", nil, err
	}
	for _, part := range []struct{ kind, body string }{{"text/plain", strings.TrimSpace(text) + "\n"}, {"text/html", markup + "\n"}} {
		var h mail.InlineHeader
		h.SetContentType(part.kind, map[string]string{"charset": "utf-8"})
		w, err := parts.CreatePart(h)
		if err == nil {
			_, err = io.WriteString(w, part.body)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			return "", nil, err
		}
	}
	if err := parts.Close(); err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("%d.%s.feedhistory", max(r.Time().Unix(), 0), key), bytes.ReplaceAll(out.Bytes(), []byte("\r\n"), []byte("\n")), nil // as in files
}
