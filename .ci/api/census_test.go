package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// unusedNames are exported names without a user, with the reason to keep each.
var unusedNames = map[string]string{
	"/check.Representations":                 "a scope among others that are used",
	"/harvest/relay.EntryID":                 "the name of a header field, for other producers",
	"/harvest/relay.ReplacedError":           "an error to match with errors.Is or errors.As, named where it is returned",
	"/backfill.Snapshot":                     "the type of a Memento's snapshots, in its doc comments",
	"/harvest/atompmh.AsDeleted":             "the zero value of a setting or a state",
	"/harvest/atompmh.AsRecord":              "a value of an enumeration whose others are used",
	"/harvest/atompmh.ByEntry":               "the zero value of a setting or a state",
	"/harvest/atompmh.DeletionsError":        "an error to match with errors.Is or errors.As, named where it is returned",
	"/harvest/atompmh.FormatError":           "an error to match with errors.Is or errors.As, named where it is returned",
	"/harvest/atompmh.Pending":               "a part of a value that programs store",
	"/harvest/atompmh.Seen":                  "a part of a value that programs store",
	"/harvest/atompmh.Unacceptable":          "the type of Harvester.Unacceptable",
	"/harvest/datareplication.EntityError":   "an error to match with errors.Is or errors.As, named where it is returned",
	"/harvest/datareplication.ErrField":      "an error to match with errors.Is or errors.As, named where it is returned",
	"/harvest/datareplication.ErrLength":     "an error to match with errors.Is or errors.As, named where it is returned",
	"/harvest/datareplication.ErrNoStamp":    "an error to match with errors.Is or errors.As, named where it is returned",
	"/harvest/datareplication.ErrSuperseded": "an error to match with errors.Is or errors.As, named where it is returned",
	"/harvest/datareplication.Patch":         "a value of an enumeration whose others are used",
	"/harvest/modifiedrange.Probe":           "the zero value of a setting or a state",
	"/mirror/sqlstore.ErrReadOnly":           "an error to match with errors.Is or errors.As, named where it is returned",
	"/mirror/sqlstore.ErrStructure":          "an error to match with errors.Is or errors.As, named where it is returned",
	"/publish/s3.ErrAltered":                 "an error to match with errors.Is or errors.As, named where it is returned",
	"/publish/s3.ErrChanged":                 "an error to match with errors.Is or errors.As, named where it is returned",
	"/publish/s3.ErrNotLocked":               "an error to match with errors.Is or errors.As, named where it is returned",
	"/republish.ErrNameTaken":                "an error to match with errors.Is or errors.As, named where it is returned",
}

// Each exported type, constant, variable and function is used in another package or in an
// example; so are the packages for tests in their own tests.
func TestUsed(t *testing.T) {
	c, err := takeCensus("../..")
	require.NoError(t, err)
	require.Greater(t, len(c.exported), 1000)
	unused := map[string]bool{}
	for _, line := range c.unused() {
		kind, name, _ := strings.Cut(line, "\t")
		unused[name] = true
		if kind != "field" && kind != "method" && unusedNames[name] == "" {
			t.Errorf("%s %s is used nowhere outside its package and in no example: unexport it, delete it, or give an example", kind, name)
		}
	}
	for name := range unusedNames {
		require.True(t, unused[name], "%s is used, or gone: take it off the list", name)
	}
}
