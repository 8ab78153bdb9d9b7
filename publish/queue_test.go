package publish

import (
	"testing"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/stretchr/testify/require"
)

// TestQueued reads items of the temporary file: they have the zones of their times, and damage is an error.
func TestQueued(t *testing.T) {
	at := time.Date(2003, 12, 13, 18, 30, 2, 25, time.FixedZone("", 3600))
	for _, v := range []*queuedItem{
		{number: 7, id: "urn:1"},
		{number: 1 << 40, id: "urn:é", time: at, change: at.Add(1), source: at.UTC(), text: "<entry/>"},
		{id: "urn:2", text: "<entry/>", authors: []feedhistory.Person{{Name: "Ann"}, {Name: "Bob", URI: "https://bob.example/", Email: "bob@example.org"}}},
	} {
		text := string(appendQueued(nil, v))
		read, err := readQueued(text)
		require.NoError(t, err)
		require.Equal(t, v.time.Format(time.RFC3339Nano), read.time.Format(time.RFC3339Nano))
		require.True(t, v.change.Equal(read.change) && v.source.Equal(read.source))
		again := *v
		again.time, again.change, again.source = read.time, read.change, read.source
		require.Equal(t, &again, read)
		if len(v.authors) == 0 { // of more, the rest may be whole
			for n := range len(text) {
				_, err := readQueued(text[:n])
				require.Error(t, err, "%q", text[:n])
			}
		}
	}
	odd := queuedItem{time: time.Unix(0, 0).In(time.FixedZone("", -60))} // which has no binary form
	read, err := readQueued(string(appendQueued(nil, &odd)))
	require.NoError(t, err)
	require.True(t, odd.time.Equal(read.time))
}
