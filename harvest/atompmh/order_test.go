package atompmh

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
)

// A record from the future waits for its time, is reported, and does not hold
// up other records. Until then its earlier state is published.
func TestFuture(t *testing.T) {
	for _, mode := range []Deletions{ByEntry, ByAbsence} {
		t.Run(mode.String(), func(t *testing.T) {
			now := noon
			p := Producer{Output: newMemory(), Base: base, Deletions: mode, Now: func() time.Time { return now }}
			before := item("urn:a", noon.Add(-time.Hour))
			p.Pool = items(before)
			require.NoError(t, p.Update(t.Context()))
			ahead := item("urn:a", noon.AddDate(80, 0, 0))
			ahead.Representations[0].URL += "2"
			soon := item("urn:soon", noon.Add(30*time.Second))
			p.Pool = items(ahead, item("urn:b", noon), soon)
			for range 2 {
				err := p.Update(t.Context())
				var record *RecordError
				require.ErrorIs(t, err, ErrFuture)
				require.ErrorAs(t, err, &record)
				require.Equal(t, RecordError{ID: "urn:a", Modified: ahead.Modified, Clause: "atom-pmh#7", Err: ErrFuture}, *record)
				require.NotContains(t, err.Error(), "urn:soon") // clocks may differ by as much
				require.Equal(t, []string{"urn:b", "urn:a"}, published(t, &p))
			}
			doc, err := p.published()
			require.NoError(t, err)
			require.Equal(t, before.Modified, doc.Entries[1].Updated)

			now = noon.Add(time.Minute)
			p.Pool = items(ahead, item("urn:b", noon), soon, item("urn:c", now))
			require.ErrorIs(t, p.Update(t.Context()), ErrFuture)
			require.Equal(t, []string{"urn:c", "urn:soon", "urn:b", "urn:a"}, published(t, &p))

			now = ahead.Modified
			require.NoError(t, p.Update(t.Context()))
			require.Equal(t, []string{"urn:a", "urn:c", "urn:soon", "urn:b"}, published(t, &p))
		})
	}
}

// If only absence shows deletions, a deleted record does not stay because its
// deletion is stamped in the future.
func TestFutureDeletion(t *testing.T) {
	p := Producer{Output: newMemory(), Base: base, Deletions: ByAbsence, Now: func() time.Time { return noon }}
	p.Pool = items(item("urn:a", noon))
	require.NoError(t, p.Update(t.Context()))
	p.Pool = items(Item{ID: "urn:a", Modified: noon.AddDate(1, 0, 0), Deleted: true})
	require.NoError(t, p.Update(t.Context()))
	require.Empty(t, published(t, &p))
}

// If the published feed itself is from the future, an update returns an error
// instead of never publishing anything.
func TestPublishedFuture(t *testing.T) {
	now := noon.AddDate(80, 0, 0)
	p := Producer{Output: newMemory(), Base: base, Now: func() time.Time { return now }}
	p.Pool = items(item("urn:a", now))
	require.NoError(t, p.Update(t.Context()))
	now = noon
	p.Pool = items(item("urn:a", noon.AddDate(80, 0, 0)), item("urn:b", noon))
	err := p.Update(t.Context())
	require.ErrorIs(t, err, ErrLate)
	require.ErrorContains(t, err, "the published feed is dated 2092-11-01T12:00:00Z")
	require.ErrorContains(t, err, "urn:b")
}

// A change that becomes visible late is found however late it is: at once by a
// new Producer, and by a running one after the interval.
//
// Duties: atom-pmh#12, atom-pmh#23, atom-pmh#24.
func TestCompare(t *testing.T) {
	late := item("urn:late", noon.Add(-90*time.Second))
	older := Item{ID: "urn:c", Modified: noon.AddDate(0, -3, 0), Deleted: true}
	for name, test := range map[string]struct {
		compare time.Duration
		it      Item
		want    error
		clause  string
		after   time.Duration // time until it is found; negative: never
	}{
		"by default":          {0, late, ErrLate, "atom-pmh#7", 24 * time.Hour},
		"by the hour":         {time.Hour, late, ErrLate, "atom-pmh#7", time.Hour},
		"never":               {-1, late, nil, "", -1},
		"an archived one":     {time.Hour, item("urn:c", noon.AddDate(0, -2, 0)), ErrLate, "atom-pmh#7", time.Hour},
		"a deletion":          {time.Hour, older, ErrSameTime, "atom-pmh#13, atom-pmh#24", time.Hour},
		"an earlier state":    {time.Hour, item("urn:c", noon.AddDate(0, -4, 0)), ErrLate, "atom-pmh#12, atom-pmh#23", time.Hour},
		"an earlier deletion": {time.Hour, Item{ID: "urn:c", Modified: noon.AddDate(0, -4, 0), Deleted: true}, ErrLate, "atom-pmh#12, atom-pmh#23", time.Hour},
		"what was there then": {time.Hour, item("urn:c", noon.AddDate(0, -3, 0)), nil, "", -1},
	} {
		t.Run(name, func(t *testing.T) {
			now := noon
			p := Producer{
				Output: newMemory(), Base: base, Compare: test.compare, Now: func() time.Time { return now },
				Split: feedhistory.Split{Size: 1},
			}
			all := []Item{item("urn:a", noon), item("urn:c", noon.AddDate(0, -3, 0)), item("urn:d", noon.AddDate(0, -1, 0))}
			p.Pool = items(all...)
			require.NoError(t, p.Update(t.Context()))
			if test.it.ID == "urn:c" {
				all[1] = test.it
			} else {
				all = append(all, test.it)
			}
			p.Pool = items(all...)
			now = noon.Add(max(test.after, 48*time.Hour) - 1)
			if test.after > 0 {
				now = noon.Add(test.after - 1)
			}
			require.NoError(t, p.Update(t.Context()))
			now = now.Add(1)
			for range 2 { // and again, until somebody does something about it
				err := p.Update(t.Context())
				if test.want == nil {
					require.NoError(t, err)
					continue
				}
				var record *RecordError
				require.ErrorIs(t, err, test.want)
				require.ErrorAs(t, err, &record)
				require.Equal(t, test.clause, record.Clause)
				require.Equal(t, test.it.ID, record.ID)
			}
			fresh := p
			fresh.compared = time.Time{}
			if err := fresh.Update(t.Context()); test.compare >= 0 {
				require.ErrorIs(t, err, test.want)
			} else {
				require.NoError(t, err)
			}
		})
	}
}

// If an archive was removed, the records that may have been in it do not count
// as late.
func TestCompareWithoutArchive(t *testing.T) {
	out := newMemory()
	p := Producer{Output: out, Base: base, Split: feedhistory.Split{Size: 1}}
	p.Pool = items(item("urn:a", noon.AddDate(0, -3, 0)), item("urn:b", noon.AddDate(0, -2, 0)), item("urn:c", noon))
	require.NoError(t, p.Update(t.Context()))
	for _, name := range out.Names() {
		if strings.Contains(out.text(t, name), ">urn:a<") {
			require.NoError(t, out.MemoryOutput.Remove(t.Context(), name))
		}
	}
	fresh := Producer{Output: out, Base: base, Pool: p.Pool, Split: p.Split}
	require.NoError(t, fresh.Update(t.Context()))
	fresh = Producer{Output: out, Base: base, Split: p.Split, Pool: items(item("urn:b", noon.AddDate(0, -1, 0)))}
	require.ErrorIs(t, fresh.Update(t.Context()), ErrLate)
}

// An entry from the future does not move the mark there: later changes are
// found, and the entry is reported once.
func TestFutureMark(t *testing.T) {
	s := serve(t, map[string]string{
		"/feed": feed("2099-01-01T00:00:00Z", "/1", record("urn:x", "2099-01-01T00:00:00Z"), record("urn:b", day(3))),
		"/1":    feed(day(2), "/0", record("urn:a", day(2))),
		"/0":    feed(day(1), "", record("urn:o", day(1))),
	})
	ahead := "record 2099-01-01T00:00:00Z urn:x https://example.org/x\n"
	_, mark, changes := s.whole("/feed", Mark{})
	require.Equal(t, []string{is("urn:o", 1), is("urn:a", 2), is("urn:b", 3), ahead}, changes)
	require.Equal(t, markAt(3).Time, mark.Time)

	s.docs["/feed"] = feed(day(5), "/3", record("urn:d", day(5)))
	s.docs["/3"] = feed(day(4), "/2", record("urn:c", day(4)))
	s.docs["/2"] = feed("2099-01-01T00:00:00Z", "/1", record("urn:x", "2099-01-01T00:00:00Z"), record("urn:b", day(3)))
	_, mark, changes = s.whole("/feed", mark)
	require.Equal(t, []string{is("urn:c", 4), is("urn:d", 5)}, changes)
	require.Equal(t, "/feed /3 /2 /1", strings.Join(s.asked.All(), " "))
	require.Equal(t, markAt(5).Time, mark.Time)

	// A mark that an earlier version has set to the future is not used.
	mark.Time = time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
	s.docs["/feed"] = strings.Replace(feed("2099-01-01T00:00:00Z", "/4", record("urn:e", day(6))), "<id>", "<id>", 1)
	s.docs["/4"] = feed(day(5), "/3", record("urn:d", day(5)))
	h, mark, changes := s.whole("/feed", mark)
	require.Contains(t, changes, is("urn:e", 6))
	require.False(t, h.All())
	require.Equal(t, markAt(6).Time, mark.Time)
}

// A reported deletion is not taken back by what is left of the record if the
// deletion could not be read, nor by what the next harvest finds.
func TestDeletedStays(t *testing.T) {
	archive := feed(day(4), "/1", record("urn:a", day(2)), deletion("urn:a", day(4)))
	s := serve(t, map[string]string{
		"/feed": feed(day(4), "/1", record("urn:a", day(2)), deletion("urn:a", day(4))),
		"/1":    feed(day(1), "", record("urn:o", day(1))),
	})
	_, mark, changes := s.whole("/feed", Mark{})
	require.Equal(t, []string{is("urn:o", 1), isDeleted("urn:a", 4)}, changes)

	s.docs["/feed"] = feed(day(5), "/2", record("urn:b", day(5)))
	s.docs["/2"] = archive[:strings.Index(archive, "<entry><title/><id>urn:a</id><updated>"+day(4))]
	_, changes, err := s.harvest("/feed", mark)
	require.ErrorAs(t, err, new(*feedhistory.Gap))
	require.Equal(t, []string{is("urn:b", 5)}, changes)

	// The whole archive has the deletion, or its producer has dropped it.
	s.docs["/2"] = archive
	_, next, changes := s.whole("/feed", mark)
	require.Equal(t, []string{is("urn:b", 5)}, changes)
	s.docs["/2"] = feed(day(4), "/1", record("urn:a", day(2)))
	_, _, changes = s.whole("/feed", mark)
	require.Equal(t, []string{is("urn:b", 5)}, changes)
	require.Equal(t, markAt(5).Time, next.Time)
}

// Of two copies with the same time, it is known only after everything has been
// read which one counts.
func TestCopyStays(t *testing.T) {
	moved := strings.Replace(record("urn:a", day(2)), "org/a", "org/moved", 1)
	s := serve(t, map[string]string{
		"/feed": feed(day(2), "/1", record("urn:a", day(2))), "/1": feed(day(2), "", moved),
	})
	_, mark, changes := s.whole("/feed", Mark{})
	require.Equal(t, []string{is("urn:a", 2)}, changes)
	s.docs["/feed"] = feed(day(3), "/2", record("urn:b", day(3)))
	_, changes, err := s.harvest("/feed", mark) // /2 is missing
	require.Error(t, err)
	require.NotContains(t, strings.Join(changes, ""), "moved")
	s.docs["/2"] = feed(day(2), "/1", moved, deletion("urn:o", day(2)))[:len(feed(day(2), "/1", moved))-len("</feed>")]
	_, changes, err = s.harvest("/feed", mark)
	require.True(t, errors.As(err, new(*feedhistory.Gap)))
	require.Equal(t, []string{is("urn:b", 3)}, changes)
}
