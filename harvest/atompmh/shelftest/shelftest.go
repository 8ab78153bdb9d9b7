// Package shelftest tests implementations of atompmh.Shelf.
package shelftest

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/harvest/atompmh"
)

// Run tests a Shelf for the contract of the interface, twice: Clear makes it like new. The
// Shelf needs room for some megabytes.
func Run(t *testing.T, shelf atompmh.Shelf) {
	for range 2 {
		require.NoError(t, shelf.Clear())
		requireEntries(t, shelf, nil)
		testEntries(t, shelf)
		testBlocks(t, shelf)
	}
}

// entries are some with equal times, with times far away, and with keys of any bytes.
func entries() (all []atompmh.Held) {
	at := time.Date(2012, 11, 1, 7, 0, 0, 0, time.UTC)
	for i := range 5000 {
		all = append(all, atompmh.Held{Key: fmt.Sprintf("urn:%d\x00r", (i*7919)%5000), Time: at.Add(time.Duration(i/3) * time.Nanosecond), Data: fmt.Append(nil, i)})
	}
	for i, key := range []string{"\x00r", "a", "a\x00e1", "a\x00r", "ab", "\xff\xfe", strings.Repeat("long", 1000), "Ä", "A", "' OR 1=1"} {
		all = append(all, atompmh.Held{Key: key, Time: at, Data: []byte{0, 255, byte(i)}})
	}
	return append(all,
		atompmh.Held{Key: "zero", Data: []byte("a time that is zero")},
		atompmh.Held{Key: "first", Time: time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), Data: []byte("the first year")},
		atompmh.Held{Key: "last", Time: time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC), Data: []byte("the last year")})
}

func testEntries(t *testing.T, shelf atompmh.Shelf) {
	all := entries()
	for _, h := range all {
		_, ok, err := shelf.Get(h.Key)
		require.NoError(t, err)
		require.False(t, ok, "%q", h.Key)
		require.NoError(t, shelf.Put(h))
	}
	for i := range all { // some are replaced, with another time
		if i%4 == 0 {
			all[i].Time = all[i].Time.Add(time.Duration(i) * time.Second).UTC()
			all[i].Data = []byte("replaced")
			require.NoError(t, shelf.Put(all[i]))
		}
	}
	requireEntries(t, shelf, all)
	requireEntries(t, shelf, all)
	for range shelf.All() {
		break
	}
}

// requireEntries requires that a Shelf has just the given entries, in order.
func requireEntries(t *testing.T, shelf atompmh.Shelf, want []atompmh.Held) {
	slices.SortFunc(want, func(a, b atompmh.Held) int {
		return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.Key, b.Key))
	})
	n := 0
	for h, err := range shelf.All() {
		require.NoError(t, err)
		require.Less(t, n, len(want))
		requireSame(t, want[n], h)
		got, ok, err := shelf.Get(h.Key)
		require.NoError(t, err)
		require.True(t, ok, "%q", h.Key)
		requireSame(t, want[n], got)
		n++
	}
	require.Len(t, want, n)
}

func requireSame(t *testing.T, want, got atompmh.Held) {
	require.Equal(t, want.Key, got.Key)
	require.Equal(t, want.Data, got.Data, "%q", want.Key)
	require.True(t, want.Time.Equal(got.Time), "%q: %v, not %v", want.Key, got.Time, want.Time)
	require.Equal(t, want.Time.IsZero(), got.Time.IsZero(), "%q", want.Key)
}

func testBlocks(t *testing.T, shelf atompmh.Shelf) {
	const most = 50
	block := func(n int) []byte { return bytes.Repeat([]byte{byte(n), 0, 255}, n*500) }
	for n := range most {
		require.NoError(t, shelf.PutBlock(n, block(n)))
	}
	for n := range most {
		got, err := shelf.Block(most - 1 - n)
		require.NoError(t, err)
		require.True(t, bytes.Equal(block(most-1-n), got), "block %d", most-1-n)
	}
	_, err := shelf.Block(most)
	require.Error(t, err)
}
