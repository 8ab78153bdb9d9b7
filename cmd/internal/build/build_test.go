package build

import (
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
)

func TestDescribe(t *testing.T) {
	for _, tc := range []struct {
		version  string
		settings []debug.BuildSetting
		want     string
	}{
		{"(devel)", nil, feedhistory.Version + " (go1.26.8)"},
		{"v0.9.1", nil, "0.9.1 (go1.26.8)"},
		{"(devel)", []debug.BuildSetting{{Key: "vcs.revision", Value: "0123456789abcdef"}, {Key: "vcs.modified", Value: "true"}},
			feedhistory.Version + " (revision 0123456789ab, modified, go1.26.8)"},
	} {
		info := &debug.BuildInfo{GoVersion: "go1.26.8", Settings: tc.settings}
		info.Main.Version = tc.version
		require.Equal(t, tc.want, describe(info))
	}
}
