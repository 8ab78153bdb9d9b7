package atompmh

import (
	"cmp"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/mirror"
)

// newShelf returns the Shelf of the tests' harvesters; TestShelves sets it.
var newShelf = func() Shelf { return nil }

// A listShelf is a second, simple Shelf. It can fail, and return wrong data.
type listShelf struct {
	held   []Held
	blocks [][]byte
	fails  int // the operation to fail, from one; zero means none
	wrong  func(*Held)
}

var errShelf = errors.New("the shelf has failed")

func (s *listShelf) operate() error {
	if s.fails--; s.fails == 0 {
		return errShelf
	}
	return nil
}

func (s *listShelf) Clear() error {
	s.held, s.blocks = nil, nil
	return s.operate()
}

func (s *listShelf) find(key string) int {
	return slices.IndexFunc(s.held, func(h Held) bool { return h.Key == key })
}

func (s *listShelf) Put(h Held) error {
	if i := s.find(h.Key); i >= 0 {
		s.held = slices.Delete(s.held, i, i+1)
	}
	s.held = append(s.held, h)
	return s.operate()
}

func (s *listShelf) Get(key string) (Held, bool, error) {
	i := s.find(key)
	if err := s.operate(); i < 0 || err != nil {
		return Held{}, false, err
	}
	return s.held[i], true, nil
}

func (s *listShelf) All() iter.Seq2[Held, error] {
	return func(yield func(Held, error) bool) {
		slices.SortFunc(s.held, func(a, b Held) int { return cmp.Or(a.Time.Compare(b.Time), strings.Compare(a.Key, b.Key)) })
		for _, h := range s.held {
			if s.wrong != nil {
				s.wrong(&h)
			}
			if err := s.operate(); !yield(h, err) || err != nil {
				return
			}
		}
	}
}

func (s *listShelf) PutBlock(number int, data []byte) error {
	if number != len(s.blocks) {
		return errors.New("not the next number")
	}
	s.blocks = append(s.blocks, data)
	return s.operate()
}

func (s *listShelf) Block(number int) ([]byte, error) { return s.blocks[number], s.operate() }

// TestShelves checks that harvests do not depend on the Shelf.
func TestShelves(t *testing.T) {
	newShelf = func() Shelf { return new(listShelf) }
	defer func() { newShelf = func() Shelf { return nil } }()
	for name, test := range map[string]func(*testing.T){
		"StopRule": TestStopRule, "EqualTimes": TestEqualTimes, "Classification": TestClassification, "Complete": TestComplete,
		"SetBack": TestSetBack, "Overlap": TestOverlap, "NotWhole": TestNotWhole, "NotAtom": TestNotAtom, "Fractions": TestFractions, "Damaged": TestDamaged,
		"ArchivesMadeAnew": TestArchivesMadeAnew, "Examples": TestExamples, "BrokenExamples": TestBrokenExamples,
		"ForeignProducers": TestForeignProducers, "FeedTimeInArchives": TestFeedTimeInArchives, "FeedTime": TestFeedTime,
		"FutureMark": TestFutureMark, "DeletedStays": TestDeletedStays, "CopyStays": TestCopyStays, "Model": TestModel,
		"ManyTexts": TestManyTexts, "Historical": TestHistorical,
	} {
		t.Run(name, test)
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

// TestShelfErrors checks that an error of a Shelf at any moment ends the harvest, which then
// can be repeated.
func TestShelfErrors(t *testing.T) {
	for name, from := range map[string]Mark{
		"first harvest":     {},
		"formerly complete": {Time: markAt(1).Time, Complete: true, Seen: map[string]SeenRecord{"urn:x": {Time: markAt(1).Time}}},
	} {
		s := serveSite(t, shelved)
		s.Historical = true
		failed := 0
		for n := 1; ; n++ {
			s.Shelf = &listShelf{fails: n}
			h, _, err := s.harvest("/feed", from)
			next, whole := h.Mark()
			if err == nil {
				require.True(t, whole)
				break
			}
			require.ErrorIs(t, err, errShelf, name)
			require.False(t, whole)
			require.Equal(t, from, next)
			failed++
		}
		require.Greater(t, failed, 30, name)
	}
}

// TestKeepShelfErrors checks the same for a feed that Keep commits as a whole.
func TestKeepShelfErrors(t *testing.T) {
	s := serveSite(t, map[string]string{"/feed": feed(day(2), "complete", record("urn:a", day(2)), record("urn:b", day(1)))})
	s.URL = s.url + "/feed"
	for n := 1; ; n++ {
		m := &mirror.Mirror{Store: new(mirror.Memory)}
		s.Shelf = &listShelf{fails: n}
		if _, err := s.Keep(t.Context(), m); err == nil {
			require.Greater(t, n, 6)
			return
		} else {
			require.ErrorIs(t, err, errShelf)
		}
	}
}

// TestDamagedShelf checks that wrong data from a Shelf is an error.
func TestDamagedShelf(t *testing.T) {
	for name, wrong := range map[string]func(*Held){
		"key":   func(h *Held) { h.Key = "urn:a" },
		"empty": func(h *Held) { h.Data = nil },
		"cut":   func(h *Held) { h.Data = h.Data[:len(h.Data)-1] },
		"place": func(h *Held) { h.Data = append(h.Data[:9:9], 0, 0, 0, 0, 200, 200, 200, 1, 0) },
	} {
		s := serveSite(t, shelved)
		s.Shelf = &listShelf{wrong: wrong}
		_, changes, err := s.harvest("/feed", Mark{})
		require.ErrorIs(t, err, errDamagedShelf, name)
		require.Empty(t, changes)
	}
}
