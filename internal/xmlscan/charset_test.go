package xmlscan

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
	"pgregory.net/rapid"
)

func encode(t *testing.T, e encoding.Encoding, s string) string {
	t.Helper()
	out, err := e.NewEncoder().String(s)
	require.NoError(t, err)
	return out
}

var declaredLabel = regexp.MustCompile(`(encoding *= *['"])([^'"]*)(['"])`)

// declaringUTF8 returns a document that says it is UTF-8, with all in its place.
func declaringUTF8(doc string) string {
	return declaredLabel.ReplaceAllStringFunc(doc, func(found string) string {
		m := declaredLabel.FindStringSubmatch(found)
		if strings.EqualFold(m[2], "utf-8") || strings.EqualFold(m[2], "utf8") {
			return found
		}
		return fmt.Sprintf("%-*s", len(found), m[1]+"utf-8"+m[3])
	})
}

func TestDecode(t *testing.T) {
	const (
		plain    = "<a>é – ж 日本 😀</a>"
		latin    = "<a>é – “x”</a>"
		declared = "<?xml version='1.0' encoding='%'?>"
	)
	declare := func(label, doc string) string { return strings.ReplaceAll(declared, "%", label) + doc }
	utf16le := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	utf16be := unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)
	utf32le := utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)
	utf32be := utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)
	for _, tt := range []struct {
		name, data, contentType string
		want                    string
		codes                   []string
	}{
		{"nothing", "", "", "", nil},
		{"one byte", "<", "", "<", nil},
		{"UTF-8", plain, "", plain, nil},
		{"UTF-8, mark", "\uFEFF" + plain, "", plain, nil},
		{"UTF-8, marks", "\uFEFF\uFEFF" + declare("utf-8", plain), "", declare("utf-8", plain), nil},
		{"UTF-8, all sources", "\uFEFF" + declare("utf-8", plain), "text/xml; charset=UTF8", declare("utf-8", plain), nil},
		{"UTF-16LE, mark", "\xFF\xFE" + encode(t, utf16le, plain), "", plain, nil},
		{"UTF-16BE, mark", "\xFE\xFF" + encode(t, utf16be, plain), "", plain, nil},
		{"UTF-32LE, mark", "\xFF\xFE\x00\x00" + encode(t, utf32le, plain), "", plain, nil},
		{"UTF-32BE, mark", "\x00\x00\xFE\xFF" + encode(t, utf32be, plain), "", plain, nil},
		{"UTF-16LE", encode(t, utf16le, plain), "", plain, nil},
		{"UTF-16BE", encode(t, utf16be, plain), "", plain, nil},
		{"UTF-32LE", encode(t, utf32le, plain), "", plain, nil},
		{"UTF-32BE", encode(t, utf32be, plain), "", plain, nil},
		{"UTF-16LE, name of other letters", encode(t, utf16le, "<ж/>"), "", "<ж/>", nil},
		{"UTF-16BE, name of other letters", encode(t, utf16be, "<ж/>"), "", "<ж/>", nil},
		{"UTF-16, declared", encode(t, utf16be, declare("UTF-16", plain)), "text/xml; charset=utf-16", declare("UTF-16", plain), nil},
		{"UTF-32, declared", encode(t, utf32le, declare("UTF-32", plain)), "", declare("UTF-32", plain), nil},
		{"UTF-16, declared otherwise", encode(t, utf16le, declare("utf-8", plain)), "", declare("utf-8", plain), []string{"charset-mismatch"}},
		{"HTTP charset", encode(t, charmap.Windows1252, latin), "text/xml; charset=windows-1252", latin, nil},
		{"HTTP charset, Latin 1 is Windows", encode(t, charmap.Windows1252, latin), `text/xml; charset="ISO-8859-1"`, latin, nil},
		{"XML declaration", encode(t, charmap.Windows1252, declare("iso-8859-1", latin)), "", declare("iso-8859-1", latin), nil},
		{"XML declaration, spaces", "<?xml encoding = \"koi8-r\" ?><a>\xD6</a>", "", "<?xml encoding = \"koi8-r\" ?><a>ж</a>", nil},
		{"Shift JIS", encode(t, japanese.ShiftJIS, declare("Shift_JIS", "<a>日本</a>")), "", declare("Shift_JIS", "<a>日本</a>"), nil},
		{"HTTP charset before declaration", declare("iso-8859-1", plain), "text/xml; charset=utf-8", declare("iso-8859-1", plain), []string{"charset-mismatch"}},
		{"mark before HTTP charset", "\uFEFF" + plain, "text/xml; charset=iso-8859-1", plain, []string{"charset-mismatch"}},
		{"UTF-16 mark before HTTP charset", "\xFE\xFF" + encode(t, utf16be, plain), "text/xml; charset=utf-8", plain, []string{"charset-mismatch"}},
		{"unknown in HTTP", encode(t, charmap.Windows1252, declare("iso-8859-1", latin)), "text/xml; charset=x-nothing", declare("iso-8859-1", latin), []string{"unknown-charset"}},
		{"unknown in both", declare("x", plain), "text/xml; charset=y", declare("x", plain), []string{"unknown-charset", "unknown-charset"}},
		{"not to be decoded", declare("iso-2022-kr", plain), "", declare("iso-2022-kr", plain), []string{"unknown-charset"}},
		{"UTF-16 declared only", declare("utf-16", plain), "", declare("utf-16", plain), []string{"charset-mismatch"}},
		{"UTF-16 in HTTP only", plain, "text/xml; charset=utf-16le", plain, []string{"charset-mismatch"}},
		{"UTF-32 declared only", declare("UTF-32BE", plain), "", declare("UTF-32BE", plain), []string{"charset-mismatch"}},
		{"UTF-16 in HTTP, Latin 1 declared", encode(t, charmap.Windows1252, declare("iso-8859-1", latin)), "text/xml; charset=utf-16", declare("iso-8859-1", latin), []string{"charset-mismatch"}},
		{"bad Content-Type", plain, "text/xml; charset", plain, nil},
		{"no quotes in declaration", "<?xml encoding=utf-16?>" + plain, "", "<?xml encoding=utf-16?>" + plain, nil},
		{"some invalid UTF-8", "<a>\xFFéé\xC3</a>", "", "<a>ÿééÃ</a>", []string{"invalid-bytes"}},
		{"some invalid UTF-8, declared", declare("utf-8", "<a>\x80é</a>"), "text/xml; charset=utf-8", declare("utf-8", "<a>€é</a>"), []string{"invalid-bytes"}},
		{"some invalid UTF-8, mark", "\uFEFF<a>\x80é</a>", "", "<a>€é</a>", []string{"invalid-bytes"}},
		{"not in windows-1252 either", "<a>\x81\x8D\x8F\x90\x9D</a>", "", "<a>\u0081\u008D\u008F\u0090\u009D</a>", []string{"invalid-bytes"}},
		{"surrogates", "<a>\xED\xA0\x80</a>", "", "<a>í\u00A0€</a>", []string{"invalid-bytes"}},
		{"pairs of surrogates", "<a>\xED\xA0\xBC\xED\xBC\xB1 \xED\xA0\xBC\xED\xBC\xB1 grün</a>", "", "<a>🌱 🌱 grün</a>", []string{"cesu-8"}},
		{"a pair of surrogates, declared", declare("iso-8859-1", "<a>\xED\xA0\xBC\xED\xBC\xB1</a>"), "", declare("iso-8859-1", "<a>🌱</a>"), []string{"charset-mismatch", "cesu-8"}},
		{"surrogates in the wrong order", "<a>\xED\xBC\xB1\xED\xA0\xBC ééééé éééé éééé éééé éééé éééé ééééé</a>", "", "<a>í¼±í\u00A0¼ ééééé éééé éééé éééé éééé éééé ééééé</a>", []string{"invalid-bytes"}},
		{"mostly no UTF-8", "<a>L\x92\xC9T\xC9\x85 dou\xE9\xA0\xBB \xE9t\xE9</a>", "", "<a>L’ÉTÉ… doué\u00A0» été</a>", []string{"invalid-bytes"}},
		{"Shift JIS declared, UTF-8", declare("Shift_JIS", "<a>日本語の文章</a>"), "", declare("Shift_JIS", "<a>日本語の文章</a>"), []string{"charset-mismatch"}},
		{"Shift JIS by HTTP, too", declare("Shift_JIS", "<a>日</a>"), "text/xml; charset=Shift_JIS", declare("Shift_JIS", "<a>譌･</a>"), nil},
		{"cut within a character", plain + "\xE2\x80", "", plain + "â€", []string{"invalid-bytes"}},
		{"no UTF-8 at all", encode(t, charmap.Windows1252, latin), "", latin, []string{"invalid-bytes"}},

		{"HTTP cannot, declaration can", encode(t, charmap.Windows1251, declare("windows-1251", "<a>Нов Пётр</a>")), "text/xml; charset=utf-8", declare("windows-1251", "<a>Нов Пётр</a>"), []string{"charset-mismatch"}},
		{"HTTP cannot, declaration can, multi-byte", encode(t, japanese.EUCJP, declare("euc-jp", "<a>日本語</a>")), "text/xml; charset=shift_jis", declare("euc-jp", "<a>日本語</a>"), []string{"charset-mismatch"}},
		{"HTTP cannot, declared UTF-8", declare("utf-8", "<a>Größe</a>"), "text/xml; charset=euc-jp", declare("utf-8", "<a>Größe</a>"), []string{"charset-mismatch"}},
		{"HTTP cannot, UTF-8 by itself", "<a>Größe</a>", "text/xml; charset=euc-jp", "<a>Größe</a>", []string{"charset-mismatch"}},
		{"HTTP can, but for a byte", declare("windows-1251", "<a>Größe, Füßen\xE9 ö</a>"), "text/xml; charset=utf-8", declare("windows-1251", "<a>Größe, Füßené ö</a>"), []string{"charset-mismatch", "invalid-bytes"}},
		{"neither can", declare("euc-kr", "<a>\xFD\xFF日本</a>"), "text/xml; charset=utf-8", declare("euc-kr", "<a>ýÿ日本</a>"), []string{"charset-mismatch", "invalid-bytes"}},
		{"HTTP can, declaration would too", encode(t, charmap.Windows1251, declare("koi8-r", "<a>Нов</a>")), "text/xml; charset=windows-1251", declare("koi8-r", "<a>Нов</a>"), []string{"charset-mismatch"}},
		{"declaration cannot, UTF-8 by itself", declare("euc-jp", "<a>Größe</a>"), "", declare("euc-jp", "<a>Größe</a>"), []string{"charset-mismatch"}},

		{"Latin 1 declared, UTF-8", declare("iso-8859-1", plain), "", declare("iso-8859-1", plain), []string{"charset-mismatch"}},
		{"Windows declared, UTF-8", declare("cp1252", plain), "", declare("cp1252", plain), []string{"charset-mismatch"}},
		{"ASCII declared, UTF-8", declare("us-ascii", plain), "", declare("us-ascii", plain), []string{"charset-mismatch"}},
		{"ASCII declared, ASCII", declare("us-ascii", "<a/>"), "", declare("us-ascii", "<a/>"), nil},
		{"Latin 1 in HTTP, UTF-8", plain, "text/xml; charset=iso-8859-1", plain, []string{"charset-mismatch"}},
		{"Latin 1 in HTTP, UTF-8 declared", declare("utf-8", plain), "text/xml; charset=iso-8859-1", declare("utf-8", plain), []string{"charset-mismatch"}},
		{"Latin 1 declared, UTF-8 but for a byte", declare("iso-8859-1", plain+"\xE2"), "", declare("iso-8859-1", plain+"â"), []string{"charset-mismatch", "invalid-bytes"}},
		{"Latin 1 declared, and here and there UTF-8", declare("iso-8859-1", "<a>\xC9\xBB \xE9\xE9</a>"), "", declare("iso-8859-1", "<a>É» éé</a>"), nil},
		{"Latin 1 declared, a byte it does not have", declare("iso-8859-1", "<a>\xE9\x81</a>"), "", declare("iso-8859-1", "<a>é\u0081</a>"), []string{"invalid-bytes"}},

		{"Latin 2 declared, and bytes it does not have", declare("iso-8859-2", "<a>\xB1\x84\x85</a>"), "", declare("iso-8859-2", "<a>ą\u0084\u0085</a>"), []string{"invalid-bytes"}},
		{"Greek declared, a byte no charset has there", declare("iso-8859-7", "<a>\xE1\xD2</a>"), "", declare("iso-8859-7", "<a>α\uFFFD</a>"), []string{"invalid-bytes"}},

		{"IBM866", encode(t, charmap.CodePage866, declare("cp866", "<a>Новости</a>")), "", declare("cp866", "<a>Новости</a>"), nil},
		{"a DOS code page", encode(t, charmap.CodePage850, declare("IBM850", "<a>é</a>")), "", declare("IBM850", "<a>‚</a>"), []string{"unknown-charset", "invalid-bytes"}},
		{"MacCyrillic", encode(t, charmap.MacintoshCyrillic, declare("MacCyrillic", "<a>Новости</a>")), "", declare("MacCyrillic", "<a>Новости</a>"), nil},
		{"GBK with characters of GB18030", encode(t, simplifiedchinese.GB18030, declare("gb2312", "<a>é 日 😀</a>")), "", declare("gb2312", "<a>é 日 😀</a>"), nil},
		{"ISO-2022-JP", encode(t, japanese.ISO2022JP, declare("iso-2022-jp", "<a>日本</a>")), "", declare("iso-2022-jp", "<a>日本</a>"), nil},
		{"not characters", "<a>\uFFFE\uFFFF\uFFFD</a>", "", "<a>\uFFFD\uFFFD\uFFFD</a>", []string{"invalid-bytes"}},
		{"odd UTF-16", encode(t, utf16le, "<a/>") + "x", "", "<a/>\uFFFD", []string{"invalid-bytes"}},
		{"half a surrogate pair", "\xFF\xFE<\x00\x00\xD8>\x00", "", "<\uFFFD>", []string{"invalid-bytes"}},
		{"not in Shift JIS", "<a>\xFD</a>", "text/xml; charset=shift_jis", "<a>\uFFFD</a>", []string{"invalid-bytes"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc, notes, err := Decode(tt.data, tt.contentType)
			require.NoError(t, err)
			require.Equal(t, declaringUTF8(tt.want), doc)
			var codes []string
			for _, n := range notes {
				codes = append(codes, n.Code)
			}
			require.Equal(t, tt.codes, codes, notes)
		})
	}
}

func TestDecodeNotes(t *testing.T) {
	_, notes, err := Decode("<?xml encoding='utf-16'?><a>\xFF\uFFFE</a>", "text/xml; charset=nonsense")
	require.NoError(t, err)
	require.Equal(t, []Note{
		{"unknown-charset", `Content-Type: unknown charset "nonsense"`, 0},
		{"charset-mismatch", "XML declaration: utf-16le, but the document is read as utf-8", 0},
		{"invalid-bytes", "2 invalid bytes or characters", 28},
	}, notes)
	_, notes, err = Decode("<a>é\xFF\xFE\uFFFD</a>", "")
	require.NoError(t, err)
	require.Equal(t, []Note{{"invalid-bytes", "2 bytes are not UTF-8, and read as windows-1252", 5}}, notes)
	_, notes, err = Decode("<a>é\uFFFE\uFFFF\xFF</a>", "")
	require.NoError(t, err)
	require.Equal(t, []Note{{"invalid-bytes", "3 invalid bytes or characters", 5}}, notes)
}

// Different bytes stay different: each byte that is not UTF-8 becomes another character, and so do most
// in every charset of single bytes.
func TestDecodeKeepsApart(t *testing.T) {
	seen := map[string]bool{}
	for b := 0x80; b <= 0xFF; b++ {
		doc, _, err := Decode("<a>"+string([]byte{byte(b)})+"</a>", "")
		require.NoError(t, err)
		require.NotContains(t, doc, "\uFFFD")
		require.False(t, seen[doc], "%X", b)
		seen[doc] = true
	}
}

// Every charset of HTML can be declared, in the usual spellings.
func TestLookup(t *testing.T) {
	for want, labels := range map[string]string{
		"utf-8":          "UTF-8 utf8 utf_8 unicode-1-1-utf-8 utf8mb4 cp65001",
		"windows-1252":   "iso-8859-1 ISO_8859-1:1987 iso8859_1 latin1 latin-1 l1 us-ascii ascii cp1252 cp-1252 win1252 windows_1252 ANSI_X3.4-1968 iso-ir-100 csASCII iso646-us",
		"windows-1250":   "cp1250 win-1250",
		"windows-1251":   "cp1251 windows1251 windows_1251 win-1251 x-cp1251",
		"windows-1253":   "cp1253",
		"windows-1254":   "cp1254 iso-8859-9 latin5",
		"windows-1255":   "cp1255",
		"windows-1256":   "cp1256",
		"windows-1257":   "cp1257",
		"windows-1258":   "cp1258",
		"windows-874":    "cp874 tis-620 iso-8859-11",
		"iso-8859-2":     "latin2 iso8859-2 ISO_8859_2",
		"iso-8859-3":     "latin3",
		"iso-8859-4":     "latin4",
		"iso-8859-5":     "cyrillic",
		"iso-8859-6":     "arabic iso-8859-6-e iso-8859-6-i",
		"iso-8859-7":     "greek iso88597",
		"iso-8859-8":     "hebrew iso-8859-8-e",
		"iso-8859-8-i":   "logical",
		"iso-8859-10":    "latin6",
		"iso-8859-13":    "ISO-8859-13",
		"iso-8859-14":    "ISO-8859-14",
		"iso-8859-15":    "latin-9 iso8859_15",
		"iso-8859-16":    "ISO-8859-16",
		"koi8-r":         "koi8r koi8 KOI8_R",
		"koi8-u":         "koi8u koi8-ru",
		"macintosh":      "mac x-mac-roman MacRoman",
		"x-mac-cyrillic": "maccyrillic mac-cyrillic x-mac-ukrainian",
		"ibm866":         "cp866 866 csIBM866 IBM-866 dos-866",
		"x-user-defined": "x-user-defined",
		"gbk":            "gb2312 GBK cp936 gb_2312-80 chinese",
		"gb18030":        "GB18030",
		"big5":           "big5-hkscs cp950 Big5",
		"euc-jp":         "eucJP EUC_JP x-euc-jp",
		"iso-2022-jp":    "csiso2022jp",
		"shift_jis":      "sjis shift-jis ms932 windows-31j cp932",
		"euc-kr":         "ks_c_5601-1987 cp949 korean",
		"utf-16le":       "utf-16 ucs-2 unicode",
		"utf-16be":       "utf-16be",
		"utf-32":         "UTF-32LE",
		"":               "x y none iso-2022-kr hz-gb-2312 utf-7 replacement cp437 IBM850 dos-850 ibm037 ebcdic-cp-us cp9999 iso-8859-99 windows-125 win125 --- " + strings.Repeat("x", 200),
	} {
		for label := range strings.FieldsSeq(labels) {
			require.Equal(t, want, lookup(label).name, label)
		}
	}
}

func TestDecodeCopiesNothing(t *testing.T) {
	data := atomFeed(2)
	doc, notes, err := Decode("\uFEFF"+data, "")
	require.NoError(t, err)
	require.Empty(t, notes)
	require.Equal(t, data, doc)
	doc, _, _ = Decode(data, "application/atom+xml; charset=utf-8")
	require.Same(t, unsafe.StringData(data), unsafe.StringData(doc))
}

func FuzzDecode(f *testing.F) {
	f.Add("<a>\xFF\uFFFE</a>", "text/xml; charset=utf-16")
	f.Add("\xFF\xFE<\x00\x00\xD8", "")
	f.Add("\x00\x00\xFE\xFF\x00\x11\x00\x00", "text/xml; charset=gb18030")
	f.Add("<?xml encoding='big5'?>\x80\xFF", "")
	f.Add("<\x1b$B", "; charset=iso-2022-jp")
	f.Add("<?xml encoding='gbk", "")
	f.Add("  <?xml encoding='a'", "")
	f.Add("<?xml encoding='windows-1251'?>\xCD\xEE\xE2", "text/xml; charset=utf-8")
	f.Add("<?xml encoding='iso-8859-1'?>\xC3\xA9\x81", "")
	f.Add("<?xml encoding='gb2312'?>\x81\x30\x81\x30\x80", "text/xml; charset=euc-kr")
	f.Fuzz(func(t *testing.T, data, contentType string) {
		doc, _, err := Decode(data, contentType)
		require.NoError(t, err)
		require.True(t, utf8.ValidString(doc))
		require.NotContains(t, doc, "\uFFFE")
		require.NotContains(t, doc, "\uFFFF")
		require.LessOrEqual(t, len(doc), 3*len(data)+len("\uFFFD"))
		label, begin := declaredCharset(doc)
		require.Equal(t, label, doc[begin:begin+len(label)])
		if begin > 0 && strings.HasPrefix(doc[begin+len(label):], doc[begin-1:begin]) && label != "" {
			require.Equal(t, utf8Name, lookup(label).name)
		}
	})
}

// A declaration of the form of XML 1.0 §2.8 needs no leniency.
func TestWellDeclared(t *testing.T) {
	for _, declaration := range []string{
		"<?xml version='1.0'?>", `<?xml version="1.1" ?>`, "<?xml\n\tversion = '1.0'\r\nencoding\t=\n\"utf-8\" standalone='no' ?>",
		"<?xml version='1.0' standalone='yes'?>", "<?xml-stylesheet href='a'?>",
	} {
		s := New(declaration+"<a/>", Limits{})
		require.Equal(t, []string{"1 <{}a", "0 /{}a"}, trace(s))
		notes, _ := s.Notes()
		require.Empty(t, notes, declaration)
	}
}

// twice encodes a text as UTF-8 once more.
func twice(text string) string {
	var b strings.Builder
	for i := range len(text) {
		b.WriteRune(latin1Rune(text[i]))
	}
	return b.String()
}

func TestEncodedTwice(t *testing.T) {
	for text, want := range map[string]string{
		twice("<a>été à “Noël”</a>"):                              "<a>été à “Noël”</a>",
		twice("<a>Привет</a><b>日本 😀</b>"):                         "<a>Привет</a><b>日本 😀</b>",
		"<a>é</a><b>" + twice("été à Noël") + "</b>":              "<a>é</a><b>été à Noël</b>",
		"<a>é</a><![CDATA[<p>" + twice("été à</p> Noël") + "]]>":  "<a>é</a><![CDATA[<p>été à</p> Noël]]>",
		"<a>é</a><![CDATA[<p>" + twice("été à") + "</p> é]]><b>é": "",
		"<a>é</a><id>" + twice("http://a/été-à-Noël") + "</id>":   "", // an ID
		"<a>Why Ã© stands for é</a>":                              "",
		"<a>Fixing Ã© in Python</a>":                              "",
		"<a>NÃO, SÃO, PÃES</a>":                                   "",
		"<a>„Ä“ CAFÉ” É” Å™ Ï€</a>":                               "",
		"<a>été à Noël, Привет</a>":                               "",
		"<a>plain</a>":                                            "",
	} {
		got, notes := XMLEncodedOnce(text)
		if want == "" {
			require.Equal(t, text, got)
			require.Empty(t, notes)
			continue
		}
		require.Equal(t, want, got)
		require.Equal(t, "encoded-twice", notes[0].Code)
		require.True(t, utf8.RuneStart(got[notes[0].Offset]))
		again, notes := XMLEncodedOnce(got)
		require.Empty(t, notes)
		require.Equal(t, got, again)
	}
}

// Many short texts, and CDATA sections without an end, take linear time.
func TestEncodedTwiceHostile(t *testing.T) {
	for _, unit := range []string{"<a>Ã©</a>", "<![CDATA[Ã©<", "Ã©Ã© Ã©<", "\u00c3"} {
		text := "é" + strings.Repeat(unit, 1<<20/len(unit))
		got, _ := XMLEncodedOnce(text)
		require.True(t, utf8.ValidString(got))
	}
}

// A feed between words is quoted, unless they are messages of PHP.
func TestIsQuotedForms(t *testing.T) {
	const level = `(Warning|Notice|Deprecated|Strict Standards|[A-Z][a-z]+ (fatal )?error)`
	message := regexp.MustCompile(`^\s*(PHP )?` + level + `: [^\n]* on line \d`)
	markup := regexp.MustCompile(`^\s*(<br ?/?>\s*)?<b>` + level + `</b>: [^\n]* on line <b>\d+</b>`)
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.OneOf(
			rapid.StringMatching(`\n?(PHP )?(Warning|Fatal error|Catchable fatal error|Error fatal error|error|Strict Standards):? (a\n?|on line |: ){0,3} on line [0-9x]`),
			rapid.StringMatching(`\n?(<br ?/?>)?\n?<b>(Warning|Parse error|error)</b>: a\n? on line (<b>x</b> on line )?<b>[0-9]{0,2}(</b>)?`))
		before, after := words.Draw(t, "before"), words.Draw(t, "after")
		const feed = "<rss></rss>"
		text := before + feed + after
		end := strings.LastIndexByte(text, '>') + 1
		want := !markup.MatchString(before) && !(message.MatchString(before) && message.MatchString(text[end:])) && hasWords(text[end:])
		require.Equal(t, want, IsQuoted(text, len(before)), "%q", text)
	})
}
