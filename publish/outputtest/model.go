package outputtest

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// testModel puts, removes and reads at random, through the two outputs
// alternately, and compares the results with a map.
func testModel(t *testing.T, w *world) {
	run := 0
	rapid.Check(t, func(t *rapid.T) {
		run++
		dir := fmt.Sprint("run", run)
		model := map[string]string{}
		out, other := w.Output, w.other
		name := func() string {
			return dir + "/" + rapid.SampledFrom([]string{"a", "b", "c/d", "c/e", ".f", "c/.g", "feed.atom"}).Draw(t, "name")
		}
		for range rapid.IntRange(1, 3).Draw(t, "turns") {
			unlock, err := out.Lock(t.Context())
			require.NoError(t, err)
			for range rapid.IntRange(0, 6).Draw(t, "steps") {
				switch name := name(); rapid.SampledFrom([]string{"put", "remove", "read"}).Draw(t, "step") {
				case "put":
					text := rapid.SampledFrom([]string{"", "one", "two", aFeed, anArchive}).Draw(t, "text")
					require.NoError(t, out.Put(t.Context(), name, []byte(text)))
					model[name] = text
				case "remove":
					require.NoError(t, out.Remove(t.Context(), name))
					delete(model, name)
				case "read":
					requireModel(t, out, model, name)
				}
				requireModel(t, other, model, name())
			}
			require.NoError(t, unlock())
			out, other = other, out
		}
		var want []string
		for name := range model {
			requireModel(t, out, model, name)
			if !strings.Contains(name, "/.") {
				want = append(want, name)
			}
		}
		slices.Sort(want)
		names, err := visible(out, dir)
		require.NoError(t, err)
		require.Equal(t, want, names)
	})
}

func requireModel(t *rapid.T, out fs.FS, model map[string]string, name string) {
	data, err := fs.ReadFile(out, name)
	text, ok := model[name]
	if !ok {
		require.ErrorIs(t, err, fs.ErrNotExist)
		return
	}
	require.NoError(t, err)
	require.Equal(t, text, string(data))
}
