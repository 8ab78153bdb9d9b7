package terminal

import (
	"runtime/debug"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/feedhistory/feedhistory"
	"github.com/stretchr/testify/require"
)

// Every message of the parser that a user can meet is in our words.
func TestUsageText(t *testing.T) {
	type list struct {
		Limit  int           `default:"0"`
		Pace   time.Duration `default:"0s"`
		Format string        `enum:"json,csv" default:"csv"`
		Title  string
		JSON   bool   `name:"json" xor:"form"`
		Raw    bool   `xor:"form"`
		URL    string `arg:"" name:"URL"`
	}
	var line struct {
		List list `cmd:""`
		DB   struct {
			Check struct{} `cmd:""`
			Copy  struct {
				To   string `required:"" placeholder:"FILE"`
				From string `required:"" placeholder:"FILE"`
			} `cmd:""`
		} `cmd:"" name:"db"`
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{nil, "name a verb: list, db"},
		{[]string{"db"}, "name a verb: check, copy"},
		{[]string{"nosuch"}, "there is no verb nosuch"},
		{[]string{"lisst"}, `there is no verb lisst, did you mean "list"?`},
		{[]string{"db", "nosuch"}, "there is no verb nosuch"},
		{[]string{"list", "x", "y"}, "unexpected argument y"},
		{[]string{"list"}, "an argument is missing: <URL>"},
		{[]string{"list", "x", "--nosuch"}, "there is no flag --nosuch"},
		{[]string{"list", "x", "--limit"}, "--limit: the value is missing"},
		{[]string{"list", "x", "--limit=many"}, `--limit: "many" is not a whole number`},
		{[]string{"list", "x", "--limit=99999999999999999999"}, "--limit: 99999999999999999999 is too large"},
		{[]string{"list", "x", "--limit", "-1"}, "--limit: -1 is negative"},
		{[]string{"list", "x", "--title", "--raw"}, "--title: if its value begins with a hyphen, write --title=--raw"},
		{[]string{"list", "x", "--pace=5"}, `--pace: "5" is not a time such as 500ms, 10s or 1h (a file sets it)`},
		{[]string{"list", "x", "--format=xml"}, `--format: "xml" is none of json, csv`},
		{[]string{"list", "x", "--raw=maybe"}, `--raw: "maybe" is neither true nor false; without a value, the flag means true`},
		{[]string{"list", "x", "--raw", "--json"}, "--json and --raw exclude each other"},
		{[]string{"db", "copy"}, "missing flags: --from=FILE, --to=FILE"},
	} {
		_, err := kong.Must(&line).Parse(test.args)
		require.Error(t, err, test.args)
		require.Equal(t, test.want, UsageText(err, func(flag string) string {
			if flag == "pace" {
				return "a file"
			}
			return ""
		}), test.args)
	}
	require.Equal(t, []string{"list", "--help"}, AsFlags([]string{"help", "list"}))
	require.Equal(t, []string{"--version"}, AsFlags([]string{"version"}))
	require.Equal(t, []string{"list", "help"}, AsFlags([]string{"list", "help"}))
}

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
		require.Equal(t, tc.want, describeBuild(info))
	}
}
