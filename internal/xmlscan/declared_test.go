package xmlscan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

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
