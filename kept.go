package feedhistory

import (
	"strings"

	"github.com/feedhistory/feedhistory/internal/vocab"
	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

// KeptByElement returns an extension for a Draft: its entry is the copy of a feed
// reader, which may have sanitised or rewritten it. Entry.KeptBy is then the reader's
// name, wherever the entry is published again, and any copy of the publisher's own
// takes precedence.
//
//	<m:kept xmlns:m="https://github.com/feedhistory/feedhistory/ns/mirror/1.0" by="newsboat"/>
func KeptByElement(reader string) string {
	var b strings.Builder
	b.WriteString("<m:kept")
	xmlscan.WriteAttr(&b, "xmlns:m", vocab.Coverage)
	xmlscan.WriteAttr(&b, "by", reader)
	b.WriteString("/>")
	return b.String()
}
