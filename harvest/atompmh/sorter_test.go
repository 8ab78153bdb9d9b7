package atompmh

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/internal/sorter"
	"github.com/feedhistory/feedhistory/mirror"
)

// memories are how many bytes of entries the tests' harvesters have in memory: the default, or
// one or two entries, so that the others are in a file. A harvest does not depend on that.
var memories = []int{0, 500}

// memoryOf returns the memory that the run's seed gives a test.
func memoryOf(t testing.TB) int {
	name := fnv.New64a()
	_, _ = io.WriteString(name, t.Name())
	return memories[feedtest.Random(name.Sum64()).IntN(len(memories))]
}

// requireSorted requires that a sorter yields entries in order.
func requireSorted(t *testing.T, s *entrySorter, want []*heldEntry) {
	slices.SortFunc(want, s.Compare)
	for range s.Sorted() {
		break
	}
	n := 0
	for got, err := range s.Sorted() {
		require.NoError(t, err)
		require.Less(t, n, len(want))
		require.Equal(t, want[n], got)
		n++
	}
	require.Len(t, want, n)
}

// TestSorter checks both orders, in memory and in a file, of entries with equal times, with
// times far away, and with identifiers of any bytes.
func TestSorter(t *testing.T) {
	at := time.Date(2012, 11, 1, 7, 0, 0, 0, time.UTC)
	var all []*heldEntry
	add := func(id string, at time.Time, text string) {
		v := &heldEntry{At: at, Kind: ChangeKind(len(all) % 3), ID: id, Number: int64(len(all)), Document: at, Text: text}
		if v.Digest[0] = byte(len(all)); len(all)%7 == 0 {
			v.Earlier = []earlierEntry{{at, text + "earlier"}, {at.Add(-time.Hour), ""}}
		}
		all = append(all, v)
	}
	for i := range 1000 {
		add(fmt.Sprintf("urn:%d", (i*7919)%600), at.Add(time.Duration(i/3)*time.Nanosecond), strings.Repeat("text", i%50))
	}
	for _, id := range []string{"", "\x00", "a", "ab", "\xff\xfe", strings.Repeat("long", 1000), "Ä", "A", "' OR 1=1"} {
		add(id, at, strings.Repeat(id, 10))
	}
	add("zero", time.Time{}, "")
	add("first", time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), "the first year")
	add("last", time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), "the last year")
	t.Setenv("TMPDIR", t.TempDir())
	for _, compare := range []func(a, b *heldEntry) int{byRecord, byTime} {
		for _, most := range []int{0, 500, 20_000, 10_000_000} {
			files := 0
			create := func() (*os.File, error) {
				files++
				return sorter.CreateTemp()
			}
			s := entrySorter{Context: t.Context(), Compare: compare, Size: (*heldEntry).size, Most: most, Create: create, Plain: most == 20_000}
			requireSorted(t, &s, nil)
			for _, v := range all {
				require.NoError(t, s.Add(v))
			}
			requireSorted(t, &s, slices.Clone(all))
			require.Equal(t, most == 500 || most == 20_000, files == 1)
			s.Close()
		}
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestSorterInterrupted checks that the end of the context ends the use of the file.
func TestSorterInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := entrySorter{Context: ctx, Compare: byTime, Size: (*heldEntry).size, Most: 1}
	defer s.Close()
	require.NoError(t, s.Add(&heldEntry{ID: "a"}))
	cancel()
	require.ErrorIs(t, s.Add(&heldEntry{ID: "b"}), context.Canceled)
	for _, err := range s.Sorted() {
		require.ErrorIs(t, err, context.Canceled)
	}
}

// shelved is a feed with a change of every kind.
var shelved = map[string]string{
	"/feed": feed(day(9), "/2", record("urn:a", day(9)), deletion("urn:b", day(8)), entry("urn:c", day(7), ""), record("urn:e", day(5)), deletion("urn:f", day(3))),
	"/2":    feed(day(6), "/1", record("urn:b", day(6)), record("urn:a", day(5)), record("urn:a", day(5)), entry("urn:c", day(7), "<content>c</content>"), record("urn:e", day(4))),
	"/1": feed(day(4), "", record("urn:d", day(4)), entry("urn:d", day(4), ""), record("urn:a", day(3)), deletion("urn:a", day(2)), record("urn:a", day(1)),
		record("urn:e", day(7)), record("urn:f", day(3))),
}

// TestHistorical checks that earlier states come once each, oldest first.
func TestHistorical(t *testing.T) {
	s := serveSite(t, shelved)
	s.Historical = true
	s.URL = s.url + "/feed"
	var got strings.Builder
	for c, err := range s.Harvest(t.Context(), Mark{}).Changes() {
		require.NoError(t, err)
		for _, e := range c.Historical {
			got.WriteString("  " + describe(change(e, kindOf(e))))
		}
		got.WriteString(describe(c))
	}
	require.Equal(t, isDeleted("urn:f", 3)+
		"other "+day(4)+" urn:d\n"+is("urn:d", 4)+
		"other "+day(7)+" urn:c\nother "+day(7)+" urn:c\n"+
		"  "+is("urn:e", 4)+"  "+is("urn:e", 5)+is("urn:e", 7)+
		"  "+is("urn:b", 6)+isDeleted("urn:b", 8)+
		"  "+is("urn:a", 1)+"  "+is("urn:a", 3)+"  "+is("urn:a", 5)+is("urn:a", 9), got.String())
}

// TestManyTexts checks that entries come back from any of several blocks.
func TestManyTexts(t *testing.T) {
	const records = 30
	title := func(id, n int) string { return strings.Repeat(string(rune('a'+(id+n)%26)), 20_000) }
	versions := func(n int) (all []string) {
		for id := range records {
			all = append(all, strings.Replace(record("urn:"+string(rune('A'+id)), day(n)), "<title/>", "<title>"+title(id, n)+"</title>", 1))
		}
		return all
	}
	s := serveSite(t, map[string]string{"/feed": feed(day(2), "/1", versions(2)...), "/1": feed(day(1), "", versions(1)...)})
	s.URL, s.Historical = s.url+"/feed", true
	n := 0
	for c, err := range s.Harvest(t.Context(), Mark{}).Changes() {
		require.NoError(t, err)
		require.Equal(t, "urn:"+string(rune('A'+n)), c.ID)
		require.Equal(t, title(n, 2), c.Entry.Title().Plain())
		require.Len(t, c.Historical, 1)
		require.Equal(t, title(n, 1), c.Historical[0].Title().Plain())
		n++
	}
	require.Equal(t, records, n)
}

// shelvedSite serves the feed with changes of every kind to a harvester that has room for
// one entry in memory.
func shelvedSite(t *testing.T) *site {
	s := serveSite(t, shelved)
	s.Historical, s.memory = true, 1
	return s
}

// requireFailed requires that a harvest fails, and can be repeated.
func requireFailed(t *testing.T, s *site, from Mark, want string) {
	h, changes, err := s.harvest("/feed", from)
	require.ErrorContains(t, err, want)
	require.ErrorContains(t, err, "TMPDIR")
	require.Empty(t, changes)
	next, whole := h.Mark()
	require.False(t, whole)
	require.Equal(t, from, next)
}

// TestTempErrors checks that an error of each of the two files, when it is created, written
// or read, ends the harvest, and is one of Keep for a feed committed as a whole.
func TestTempErrors(t *testing.T) {
	errCreate := errors.New("no room for it")
	opened := func(flag int) func() (*os.File, error) {
		return func() (*os.File, error) {
			name := filepath.Join(t.TempDir(), "file")
			require.NoError(t, os.WriteFile(name, nil, 0o600))
			return os.OpenFile(name, flag, 0)
		}
	}
	complete := map[string]string{"/feed": feed(day(2), "complete", record("urn:a", day(2)), record("urn:b", day(1)))}
	for want, fails := range map[string]func() (*os.File, error){
		errCreate.Error():     func() (*os.File, error) { return nil, errCreate },
		"bad file descriptor": opened(os.O_RDONLY), // when written
		"read ":               opened(os.O_WRONLY),
	} {
		for name, from := range map[string]Mark{
			"first harvest":     {},
			"formerly complete": {mark{Time: markAt(1).m.Time, Complete: true, Seen: map[string]seenRecord{"urn:x": {Time: markAt(1).m.Time}}}},
		} {
			for failing := range 2 {
				t.Run(fmt.Sprint(want, name, failing), func(t *testing.T) {
					s := shelvedSite(t)
					n := 0
					s.createTemp = func() (*os.File, error) {
						if n++; n == failing+1 {
							return fails()
						}
						return sorter.CreateTemp()
					}
					requireFailed(t, s, from, want)
					require.Equal(t, failing+1, n)
					s.createTemp = nil
					_, _, changes := s.whole("/feed", from)
					require.NotEmpty(t, changes)

					kept := serveSite(t, complete)
					kept.URL, kept.memory, n = kept.url+"/feed", 1, 0
					kept.createTemp = s.createTemp
					m := &mirror.Mirror{Store: mirror.NewMemory()}
					_, err := kept.Keep(t.Context(), m)
					require.NoError(t, err)
				})
			}
		}
		kept := serveSite(t, complete)
		kept.URL, kept.memory, kept.createTemp = kept.url+"/feed", 1, fails
		_, err := kept.Keep(t.Context(), &mirror.Mirror{Store: mirror.NewMemory()})
		require.ErrorContains(t, err, want)
	}
}

// TestDamagedTemp checks that a file with something else than was written is an error.
func TestDamagedTemp(t *testing.T) {
	for name, damage := range map[string]func(f *os.File) error{
		"cut":   func(f *os.File) error { return f.Truncate(20) },
		"empty": func(f *os.File) error { return f.Truncate(0) },
		"other": func(f *os.File) error {
			_, err := f.WriteAt([]byte(strings.Repeat("other", 20)), 0)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := shelvedSite(t)
			var file *os.File
			s.createTemp = func() (f *os.File, err error) {
				if file != nil {
					return sorter.CreateTemp()
				}
				file, err = sorter.CreateTemp()
				return file, err
			}
			s.before = func(path string) {
				if path == "/1" {
					require.NoError(t, damage(file))
				}
			}
			requireFailed(t, s, Mark{}, "temporary file")
		})
	}
}
