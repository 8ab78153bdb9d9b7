package mirror

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"html"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/iri"
)

// Redacted returns the feed as documents for others may describe it. Its URLs
// have no userinfo. Of a private feed's URL, whose path and query may be the
// secret, only the host remains, and its ID, links and texts are left out if
// they quote the rest.
func (f *Feed) Redacted() *Feed {
	r := *f
	r.URL, r.Address, r.Lost, r.Alias = iri.Redact(f.URL), iri.Redact(f.Address), iri.Redact(f.Lost), iri.Redact(f.Alias)
	if !f.Private {
		return &r
	}
	r.URL, r.Address, r.Lost, r.Alias = hostURL(f.URL), "", "", ""
	if quotes(r.Title, f.secrets()) {
		r.Title = ""
	}
	r.Mark, r.Error, r.Head = nil, "", f.redactedHead()
	l := &f.Ledger.l
	r.Ledger.l = ledger{Kind: l.Kind, Cap: l.Cap, Census: l.Census, Unsettled: l.Unsettled, Looked: l.Looked, Checked: l.Checked, upkeep: l.upkeep}
	for _, d := range l.Debts {
		r.Ledger.l.Debts = append(r.Ledger.l.Debts, debt{
			Kind: d.Kind, URL: r.URL, From: r.URL, Reason: d.Reason, Message: errPrivate.Error(), Found: d.Found, Poll: d.Poll, Quota: d.Quota,
			tries: tries{Page: d.Page, Tries: d.Tries, Missing: d.Missing, Retry: d.Retry, Wait: d.Wait},
		})
	}
	return &r
}

var errPrivate = errors.New("the feed is private, so its mirror does not publish the address")

// hostURL returns a URL without anything after the host.
func hostURL(url string) string {
	u, err := iri.ParseLeniently(url)
	if err != nil || u.Host == "" {
		return "a private feed"
	}
	return u.Scheme + "://" + u.Host
}

// redactedHead returns the head of a private feed without its addresses, with
// the links to its website.
func (f *Feed) redactedHead() string {
	doc, err := f.Document()
	if err != nil {
		return ""
	}
	secrets := f.secrets()
	doc.URL, doc.Coverage = "", nil
	doc.Links = slices.DeleteFunc(slices.Clone(doc.Links), func(l feedhistory.Link) bool {
		return l.Rel != "alternate" || quotes(l.Href, secrets)
	})
	if _, ok := doc.Links.Rel("alternate"); !ok {
		doc.Links = feedhistory.Links{{Rel: "alternate", Href: hostURL(f.URL) + "/"}}
	}
	if quotes(doc.ID, secrets) {
		sum := sha256.Sum256([]byte(doc.ID))
		doc.ID = "urn:sha256:" + hex.EncodeToString(sum[:])
	}
	if head := headOf(doc); !quotes(head, secrets) {
		return head
	}
	plain := &feedhistory.Document{Format: feedhistory.FormatAtom, ID: doc.ID, Title: doc.Title, Updated: doc.Updated}
	if quotes(plain.Title, secrets) {
		plain.Title = hostURL(f.URL)
	}
	return headOf(plain)
}

// secrets returns the parts of the feed's URLs that may be secrets: userinfo,
// path and query.
func (f *Feed) secrets() (parts []string) {
	for _, url := range []string{f.URL, f.Address, f.Lost, f.Alias, f.Ledger.l.Known.URL} {
		u, err := iri.ParseLeniently(url)
		if url == "" || err != nil {
			continue
		}
		path, query, _ := strings.Cut(strings.TrimPrefix(iri.Redact(url), u.Scheme+"://"+u.Host), "?")
		parts = append(parts, u.User.String(), strings.TrimSuffix(path, "/"), query)
	}
	return slices.DeleteFunc(parts, func(part string) bool { return len(part) < minSecret })
}

// minSecret is the length of the shortest text that can be a secret.
const minSecret = 4

// quotes reports whether a text has one of the secrets.
func quotes(text string, secrets []string) bool {
	text = html.UnescapeString(text)
	return slices.ContainsFunc(secrets, func(secret string) bool {
		return strings.Contains(text, secret) || strings.Contains(text, cmp.Or(html.UnescapeString(secret), secret))
	})
}

// Redacted returns the entry of a private feed as documents for others may have
// it. Its references resolve against the directory of the feed's document, not
// against the address.
func (r *Record) Redacted() *Record {
	redacted := *r
	redacted.Content.Base, redacted.Content.Data = iri.Directory(r.Content.Base), withDirectory(r.Content.Data)
	return &redacted
}

// withDirectory returns an element whose base, if its first tag has one, is the
// directory of that base.
func withDirectory(element string) string {
	const attribute = ` xml:base="`
	tag := firstTag(element)
	start := strings.Index(tag, attribute)
	if start < 0 {
		return element
	}
	start += len(attribute)
	base, _, ok := strings.Cut(tag[start:], `"`)
	if !ok {
		return element
	}
	return element[:start] + html.EscapeString(iri.Directory(html.UnescapeString(base))) + element[start+len(base):]
}

// firstTag returns an element's start tag.
func firstTag(element string) string {
	var quote rune
	for i, c := range element {
		switch {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case c == '>':
			return element[:i+1]
		}
	}
	return ""
}
