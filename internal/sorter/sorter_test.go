package sorter

import (
	"cmp"
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

func TestMain(m *testing.M) { feedtest.Main(m) }

type value struct {
	N    int
	Text string
	from int // lost in the file
}

func byNumber(a, b *value) int { return cmp.Compare(a.N, b.N) }

// TestSorted checks the order with all values in memory, and with most in a file, compressed or not, by gob or
// otherwise.
func TestSorted(t *testing.T) {
	for _, most := range []int{0, 100} {
		for form := range 4 {
			plain, files := form&1 > 0, 0
			s := Sorter[value]{Context: t.Context(), Compare: byNumber, Size: func(v *value) int { return 10 + len(v.Text) }, Most: most, Plain: plain}
			s.Create = func() (*os.File, error) {
				files++
				return CreateTemp()
			}
			if form&2 > 0 {
				s.Append = func(b []byte, v *value) []byte { return append(strconv.AppendInt(b, int64(v.N), 10), ' ') }
				s.Read = func(text string) (*value, error) {
					n, err := strconv.Atoi(strings.TrimSuffix(text, " "))
					return &value{N: n}, err
				}
			}
			for n := range 1000 {
				require.NoError(t, s.Add(&value{N: n * 7919 % 1000, Text: "text", from: n + 1}))
				require.LessOrEqual(t, s.bytes, cmp.Or(most, usual))
			}
			for range 2 {
				n := 0
				for v, err := range s.Sorted() {
					require.NoError(t, err)
					require.Equal(t, n, v.N)
					require.Equal(t, most > 0, v.from == 0)
					n++
				}
				require.Equal(t, 1000, n)
			}
			require.Equal(t, min(most, 1), files)
			s.Close()
		}
	}
}

// TestFailure checks that the error of the file is returned.
func TestFailure(t *testing.T) {
	broken := errors.New("broken")
	s := Sorter[value]{Context: t.Context(), Compare: byNumber, Size: func(*value) int { return 1 }, Most: 1}
	s.Create = func() (*os.File, error) { return nil, broken }
	require.NoError(t, s.Add(&value{N: 1}))
	require.ErrorIs(t, s.Add(&value{N: 2}), broken)
	s.Close()
}

// TestDamage cuts the file, or changes it.
func TestDamage(t *testing.T) {
	for _, size := range []int64{1, 2, 8, 9} {
		var f *os.File
		s := Sorter[value]{Context: t.Context(), Compare: byNumber, Size: func(*value) int { return 1 }, Most: 1, Plain: true}
		s.Create = func() (_ *os.File, err error) {
			f, err = CreateTemp()
			return f, err
		}
		s.Append = func(b []byte, v *value) []byte { return append(b, "four"...) }
		s.Read = func(text string) (*value, error) {
			if text != "four" {
				return nil, errors.New("damaged")
			}
			return new(value), nil
		}
		for range 3 {
			require.NoError(t, s.Add(new(value)))
		}
		if size < 9 {
			require.NoError(t, f.Truncate(size))
		} else {
			_, err := f.WriteAt([]byte("x"), 1)
			require.NoError(t, err)
		}
		var err error
		for _, err = range s.Sorted() {
			if err != nil {
				break
			}
		}
		require.Error(t, err, size)
		s.Close()
	}
}
