package xmlscan

import (
	"mime"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/ianaindex"
	"golang.org/x/text/encoding/simplifiedchinese"
)

// A charset is an encoding and its canonical name, which is "" for none. UTF-8 has no
// encoding, and neither has UTF-32, which detect decodes itself.
type charset struct {
	name     string
	encoding encoding.Encoding
}

// The names with a special meaning.
const (
	utf8Name    = "utf-8"
	latin1Name  = "windows-1252" // the actual meaning of ISO-8859-1 and ASCII
	ebcdic      = "ibm037"
	ebcdicLatin = "ibm1047"
	ebcdicEuro  = "ibm01140"
)

// wide reports whether none of its characters is a byte of ASCII.
func (c charset) wide() bool {
	return strings.HasPrefix(c.name, "utf-16") || strings.HasPrefix(c.name, "utf-32")
}

// ebcdic reports whether its letters are not those of ASCII.
func (c charset) ebcdic() bool {
	return c.name == ebcdic || c.name == ebcdicLatin || c.name == ebcdicEuro
}

// contentCharset returns the charset parameter of a Content-Type.
func contentCharset(contentType string) string {
	_, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		return ""
	}
	return params["charset"]
}

// declaredCharset returns the encoding named in the XML declaration, and its offset.
func declaredCharset(doc string) (label string, begin int) {
	rest := doc[skipSpace(doc, 0):]
	if !strings.HasPrefix(rest, "<?xml") {
		return "", 0
	}
	begin = len(doc) - len(rest)
	rest, _, _ = strings.Cut(rest[:min(len(rest), 1024)], "?>")
	end := begin + len(rest)
	_, rest, _ = strings.Cut(rest, "encoding")
	rest = rest[skipSpace(rest, 0):]
	rest, ok := strings.CutPrefix(rest, "=")
	rest = rest[skipSpace(rest, 0):]
	if !ok || rest == "" || rest[0] != '"' && rest[0] != '\'' {
		return "", 0
	}
	label, _, _ = strings.Cut(rest[1:], rest[:1])
	return label, end - len(rest) + 1
}

// declareUTF8 changes the XML declaration of a document decoded to UTF-8, if it names
// another encoding. The rest keeps its offsets if there is room.
func declareUTF8(doc string) string {
	label, begin := declaredCharset(doc)
	end := begin + len(label)
	if label == "" || lookup(label).name == utf8Name || end == len(doc) || doc[end] != doc[begin-1] {
		return doc
	}
	room := strings.Repeat(" ", max(0, len(label)-len(utf8Name)))
	return doc[:begin] + utf8Name + doc[end:end+1] + room + doc[end+1:]
}

// lookup returns the charset a label means.
func lookup(label string) charset {
	label = strings.ToLower(strings.TrimSpace(label))
	if strings.HasPrefix(label, "utf-32") {
		return charset{name: "utf-32"}
	}
	c, ok := registered(label)
	if !ok {
		c, _ = registered(usualLabel(label))
	}
	return c
}

// registered looks a label up in HTML's list, and in IANA's.
func registered(label string) (c charset, ok bool) {
	if e, err := htmlindex.Get(label); err == nil {
		return htmlCharset(e), true
	}
	if e, err := ianaindex.IANA.Encoding(label); err == nil && e != nil {
		return ianaCharset(e), true
	}
	return charset{}, false
}

// htmlCharset returns an encoding with its name in HTML's list.
func htmlCharset(e encoding.Encoding) charset {
	switch name, _ := htmlindex.Name(e); name {
	case "replacement": // HTML's name for encodings never to be decoded
		return charset{}
	case utf8Name:
		return charset{name: name}
	case "gbk": // HTML decodes it as its superset
		return charset{name, simplifiedchinese.GB18030}
	default:
		return charset{name, e}
	}
}

// ianaCharset returns an encoding with HTML's name, or else IANA's.
func ianaCharset(e encoding.Encoding) charset {
	name, err := ianaindex.MIME.Name(e)
	if err != nil {
		return charset{}
	}
	if e, err := htmlindex.Get(name); err == nil {
		return htmlCharset(e)
	}
	return charset{strings.ToLower(name), e}
}

// usualLabels are labels of other lists, without hyphens.
var usualLabels = map[string]string{
	"cp858": "ibm00858", "cp874": "windows-874", "cp1140": ebcdicEuro, "ibm1140": ebcdicEuro,
	"cp932": "shift_jis", "eucjp": "euc-jp", "eucjpms": "euc-jp", "euckr": "euc-kr", "cp936": "gbk", "cp949": "euc-kr", "cp950": "big5", "big5hkscs": "big5",
	"cp65001": utf8Name, "utf8mb3": utf8Name, "utf8mb4": utf8Name,
	"maccyrillic": "x-mac-cyrillic", "cp10007": "x-mac-cyrillic", "macroman": "macintosh", "cp10000": "macintosh",
}

// usualLabel returns the usual spelling of a label: cp-1251, win1251 and windows_1251 mean
// windows-1251.
func usualLabel(label string) string {
	if len(label) > 40 {
		return ""
	}
	bare := strings.NewReplacer("-", "", "_", "", " ", "", ".", "").Replace(label)
	bare = strings.TrimPrefix(bare, "x")
	if usual := usualLabels[bare]; usual != "" {
		return usual
	}
	for _, family := range [...]struct{ prefix, usual string }{
		{"windows125", "windows-125"}, {"win125", "windows-125"}, {"cp125", "windows-125"},
		{"cp", "ibm"}, {"dos", "ibm"}, {"iso8859", "iso-8859-"}, {"koi8", "koi8-"},
	} {
		if number, ok := strings.CutPrefix(bare, family.prefix); ok {
			return family.usual + number
		}
	}
	return bare
}
