package publish

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
)

// Any missing archive is written again, byte for byte, if the source has its
// content: at each position in the chain, whatever else is new.
func TestRestored(t *testing.T) {
	for _, format := range []feedhistory.Format{feedhistory.Atom, feedhistory.RSS} {
		for _, split := range []feedhistory.Split{{Size: 3}, {Period: feedhistory.Day}} {
			out := newMemory()
			publisher := func() *Publisher {
				p := newPublisher(out)
				p.Format, p.Split = format, split
				return p
			}
			all := entries(t, 1, 60)
			for n := 5; n <= len(all); n += 5 { // step by step, as a site grows
				_, err := publisher().Publish(t.Context(), Batch{Entries: all[:n]})
				require.NoError(t, err)
			}
			before := out.clone()
			names := archives(t, publisher())
			for i, a := range names {
				for _, more := range []int{0, 2, 40} {
					t.Run(fmt.Sprint(format, split, i, "+", more), func(t *testing.T) {
						out.files = before.clone().files
						delete(out.files, a.name)
						p := publisher()
						p.Head = &feedhistory.Document{Title: "Another title", ID: "urn:blog"}
						report, err := p.Publish(t.Context(), Batch{Entries: append(all[:len(all):len(all)], entries(t, 100, more)...)})
						require.NoError(t, err)
						require.Equal(t, []string{a.name}, report.Restored)
						require.Empty(t, report.Lost)
						require.Equal(t, more, report.New)
						if i > 0 || more == 0 { // the newest one may have gained a successor
							require.True(t, bytes.Equal(before.files[a.name], out.files[a.name]))
						}
						checkChain(t, out, p)
						require.Len(t, fetch(t, out, p.URL()).Entries, len(all)+more)
					})
				}
			}
		}
	}
}

// An archive whose content is no longer known is reported. Older entries do not
// count as new, and those that the source has are published again, once.
func TestLost(t *testing.T) {
	out := newMemory()
	all := entries(t, 1, 30)
	_, err := newPublisher(out).Publish(t.Context(), Batch{Entries: all})
	require.NoError(t, err)
	gone := archives(t, newPublisher(out))[4]
	delete(out.files, gone.name)
	edited := append([]*feedhistory.Entry{}, all...)
	for i, e := range edited {
		if e.ID == gone.doc.Entries[1].ID {
			edited[i] = entry(t, e.ID, e.Updated.Add(time.Minute), "edited")
		}
	}
	names := len(out.files)
	for round := range 3 {
		report, err := newPublisher(out).Publish(t.Context(), Batch{Entries: edited})
		require.NoError(t, err)
		require.Equal(t, []string{gone.name}, report.Lost)
		require.Empty(t, report.Restored)
		if round == 0 {
			require.Equal(t, 3, report.New)
		} else {
			require.Zero(t, report.New)
		}
		require.Zero(t, report.Changed)
		require.NotContains(t, out.files, gone.name, "no other bytes under its name")
	}
	require.LessOrEqual(t, len(out.files), names+1)

	// An archive that was removed for good, with everything older, is only
	// reported.
	chain, err := at(newPublisher(out)).published()
	require.NoError(t, err)
	for name := range out.files {
		if name != chain.prev && archiveName.MatchString(name) {
			delete(out.files, name)
		}
	}
	report, err := newPublisher(out).Publish(t.Context(), Batch{Entries: edited[27:]})
	require.NoError(t, err)
	require.Len(t, report.Lost, 1)
}
