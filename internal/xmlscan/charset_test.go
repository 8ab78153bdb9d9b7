package xmlscan

import (
	"strings"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
)

func encode(t *testing.T, e encoding.Encoding, s string) string {
	t.Helper()
	out, err := e.NewEncoder().String(s)
	require.NoError(t, err)
	return out
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
		{"invalid UTF-8", "<a>\xFFé\xC3</a>", "", "<a>\uFFFDé\uFFFD</a>", []string{"invalid-bytes"}},
		{"surrogates", "<a>\xED\xA0\x80</a>", "", "<a>\uFFFD\uFFFD\uFFFD</a>", []string{"invalid-bytes"}},
		{"not characters", "<a>\uFFFE\uFFFF\uFFFD</a>", "", "<a>\uFFFD\uFFFD\uFFFD</a>", []string{"invalid-bytes"}},
		{"odd UTF-16", encode(t, utf16le, "<a/>") + "x", "", "<a/>\uFFFD", []string{"invalid-bytes"}},
		{"half a surrogate pair", "\xFF\xFE<\x00\x00\xD8>\x00", "", "<\uFFFD>", []string{"invalid-bytes"}},
		{"not in Shift JIS", "<a>\xFD</a>", "text/xml; charset=shift_jis", "<a>\uFFFD</a>", []string{"invalid-bytes"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			doc, notes, err := Decode(tt.data, tt.contentType)
			require.NoError(t, err)
			require.Equal(t, tt.want, doc)
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
		{"charset-mismatch", "XML declaration: utf-16le, but the document is not", 0},
		{"invalid-bytes", "2 invalid bytes or characters", 28},
	}, notes)
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
	f.Fuzz(func(t *testing.T, data, contentType string) {
		doc, _, err := Decode(data, contentType)
		require.NoError(t, err)
		require.True(t, utf8.ValidString(doc))
		require.NotContains(t, doc, "\uFFFE")
		require.NotContains(t, doc, "\uFFFF")
		require.LessOrEqual(t, len(doc), 3*len(data)+len("\uFFFD"))
	})
}
