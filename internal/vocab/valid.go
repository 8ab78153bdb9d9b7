package vocab

import (
	"mime"
	"strings"
)

// The values that the formats themselves allow.

// IsMediaType reports whether text is a media type (RFC 4287 §4.1.3.1).
func IsMediaType(text string) bool {
	kind, _, err := mime.ParseMediaType(text)
	return err == nil && strings.Contains(kind, "/") && text == strings.Trim(text, " \t\r\n")
}

// IsMedia reports whether the type of a text is a media type, which only content may have.
func IsMedia(kind string) bool {
	return kind != "" && kind != "text" && kind != "html" && kind != "xhtml"
}

// IsXMLType reports whether a media type is XML (RFC 4287 §4.1.3.3, RFC 7303).
func IsXMLType(media string) bool {
	media, _, _ = strings.Cut(media, ";")
	return strings.HasSuffix(media, "+xml") || strings.HasSuffix(media, "/xml")
}

// TextType returns the type of a text by the attributes of Atom 1.0 (type) or 0.3 (type
// and mode).
func TextType(kind, mode string) string {
	kind = strings.ToLower(strings.Trim(kind, " \t\r\n"))
	switch kind {
	case "", "text", "plain", "text/plain":
		return "text"
	case "html", "xhtml":
		return kind
	case "text/xhtml":
		return "xhtml"
	case "text/html":
		if mode == "xml" {
			return "xhtml"
		}
		return "html"
	case "application/xhtml+xml":
		if mode == "escaped" {
			return "html"
		}
		return "xhtml"
	}
	return kind
}

// IsLanguage reports whether text has the form of a language tag that begins with a
// language's code (RFC 5646 §2.1).
func IsLanguage(text string) bool {
	for i, part := range strings.Split(text, "-") {
		letters := strings.IndexFunc(part, func(c rune) bool { return c|0x20 < 'a' || c|0x20 > 'z' }) < 0
		switch {
		case len(part) == 0, len(part) > 8, i == 0 && (!letters || len(part) < 2 || len(part) > 3):
			return false
		case !letters && strings.IndexFunc(part, func(c rune) bool { return !isAlphanumeric(c) }) >= 0:
			return false
		}
	}
	return true
}

func isAlphanumeric(c rune) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// IsEmail reports whether text is an email address as Atom requires it (RFC 4287 §3.2.3).
func IsEmail(text string) bool {
	local, domain, ok := strings.Cut(text, "@")
	if !ok || local == "" || strings.HasPrefix(domain, ".") || !strings.Contains(domain, ".") {
		return false
	}
	for _, c := range local {
		if !isAlphanumeric(c) && !strings.ContainsRune("_-+.'!#$%&*/=?^`{|}~", c) {
			return false
		}
	}
	for label := range strings.SplitSeq(domain, ".") {
		if label == "" || label[0] == '-' || strings.IndexFunc(label, func(c rune) bool { return !isAlphanumeric(c) && c != '-' }) >= 0 {
			return false
		}
	}
	return true
}

// IsContact reports whether text is the author of an RSS item: an email address, perhaps
// followed by a name in parentheses.
func IsContact(text string) bool {
	address, name, named := strings.Cut(text, " ")
	return IsEmail(address) && (!named || strings.HasPrefix(name, "(") && strings.HasSuffix(name, ")"))
}

// IsOneOfRSS reports whether RSS 2.0 defines an element of an item, or else of a channel.
func IsOneOfRSS(local string, item bool) bool {
	switch local {
	case "title", "link", "description", "category", "pubDate":
		return true
	case "author", "comments", "enclosure", "guid", "source":
		return item
	case "language", "copyright", "managingEditor", "webMaster", "lastBuildDate", "generator", "docs", "cloud", "ttl",
		"image", "rating", "textInput", "skipHours", "skipDays":
		return !item
	}
	return false
}
