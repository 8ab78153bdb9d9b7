package feedtime

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The stamp of an item is read in any spelling, and one that cannot be read is no missing one.
func TestStampOf(t *testing.T) {
	august := time.Date(2018, 8, 3, 0, 0, 0, 0, time.UTC)
	const app, draft, atom03 = `xmlns:s="http://www.w3.org/2007/app"`, `xmlns:s="http://purl.org/atom/app#"`, `xmlns:s="http://purl.org/atom/ns#"`
	for desc, c := range map[string]struct {
		space, children string
		want            time.Time
		is              bool
	}{
		"none":               {app, `<updated>2018-08-03T00:00:00Z</updated>`, time.Time{}, false},
		"RFC 3339":           {app, `<s:edited>2018-08-03T00:00:00Z</s:edited>`, august, true},
		"small letters":      {app, `<s:edited>2018-08-03t00:00:00z</s:edited>`, august, true},
		"ISO 8601's offset":  {app, `<s:edited>2018-08-03T00:00:00+0000</s:edited>`, august, true},
		"no seconds":         {app, `<s:edited> 2018-08-03T00:00Z </s:edited>`, august, true},
		"basic form":         {app, `<s:edited>20180803T000000Z</s:edited>`, august, true},
		"a draft's":          {draft, `<s:edited>2018-08-03T00:00:00Z</s:edited>`, august, true},
		"unreadable":         {app, `<s:edited>in August</s:edited>`, time.Time{}, true},
		"empty":              {app, `<s:edited/>`, time.Time{}, true},
		"the seed's own":     {atom03, `<s:modified>2018-08-03T00:00:00Z</s:modified>`, august, true},
		"without a prefix":   {app, `<modified>2018-08-03T00:00:00Z</modified>`, august, true},
		"edited comes first": {app, `<modified>2001-01-01T00:00:00Z</modified><s:edited>2018-08-03T00:00:00Z</s:edited>`, august, true},
		"of something else":  {`xmlns:s="urn:s"`, `<s:edited>2018-08-03T00:00:00Z</s:edited>`, time.Time{}, false},
		"of a source":        {app, `<source><s:edited>2018-08-03T00:00:00Z</s:edited></source>`, time.Time{}, false},
	} {
		at, is := StampOf([]byte(`<entry xmlns="http://www.w3.org/2005/Atom" ` + c.space + `>` + c.children + `</entry>`))
		require.Equal(t, c.is, is, desc)
		require.True(t, c.want.Equal(at), "%s: %s", desc, at)
	}
}
