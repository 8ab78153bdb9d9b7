package ranks_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/ranks"
)

// A schedule is a line of testdata: what a walk reads of a site, and the entries that a merge of
// all of it has.
type schedule struct {
	Kind  string
	Seed  int64
	Steps []step
	Want  map[string]string
}

// A step is a document, or another feed at the address. Times are in seconds; null is none.
type step struct {
	Time, Place            int64
	Subscription, Complete bool
	Copies, Deletions      [][]any
	Adopt, Killed, Twice   bool // killed: before the transaction; twice: the changes come again
}

func moment(at any) time.Time {
	if at == nil {
		return time.Time{}
	}
	return time.Unix(int64(at.(float64)), 0)
}

func (s step) document() (d ranks.Document) {
	d = ranks.Document{Time: time.Unix(s.Time, 0), Place: s.Place, Subscription: s.Subscription, Complete: s.Complete}
	for _, c := range s.Copies {
		d.Copies = append(d.Copies, ranks.Copy{ID: fmt.Sprint(c[0]), At: moment(c[1]), Version: c[2].(string)})
	}
	for _, c := range s.Deletions {
		d.Copies = append(d.Copies, ranks.Copy{ID: fmt.Sprint(c[0]), At: moment(c[1])})
	}
	return d
}

// A program has a table of entries: rank and text, "" of a deletion.
type program map[string][2]string

// apply does what each of three SQL statements would.
func (p program) apply(d ranks.Document, changes []ranks.Change) (written int) {
	set := func(id, rank, text string) {
		p[id] = [2]string{rank, text}
		written++
	}
	for _, c := range changes {
		switch row, ok := p[c.ID]; c.Op {
		case ranks.Put:
			text := ""
			if c.Copy >= 0 {
				text = d.Copies[c.Copy].Version
			}
			if !ok || c.Rank >= row[0] {
				set(c.ID, c.Rank, text)
			}
		case ranks.Keep:
			if ok && c.Rank > row[0] {
				set(c.ID, c.Rank, row[1])
			}
		case ranks.Clear:
			for id, row := range p {
				if row[0] >= c.Since && row[0] < c.Rank && row[1] != "" {
					set(id, c.Rank, "")
				}
			}
		}
	}
	return written
}

func (p program) live() map[string]string {
	live := map[string]string{}
	for id, row := range p {
		if row[1] != "" {
			live[id] = row[1]
		}
	}
	return live
}

// A program that applies the changes has the entries of a merge of everything ever read. The lines
// are schedules of the model of this rule in another language.
func TestSchedules(t *testing.T) {
	path := os.Getenv("FEEDHISTORY_RANKS")
	if path == "" {
		path = "testdata/schedules.jsonl"
	}
	file, err := os.Open(path)
	require.NoError(t, err)
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	n := 0
	for lines.Scan() {
		var s schedule
		require.NoError(t, json.Unmarshal(lines.Bytes(), &s))
		var table ranks.Table
		p := program{}
		for _, step := range s.Steps {
			var changes []ranks.Change
			var after ranks.Table
			d := step.document()
			if step.Adopt {
				changes, after = table.Adopt()
			} else {
				changes, after = table.Read(d)
			}
			if step.Killed {
				continue
			}
			p.apply(d, changes)
			if step.Twice {
				p.apply(d, changes)
			}
			text, err := json.Marshal(after) // as it is stored
			require.NoError(t, err)
			table = ranks.Table{}
			require.NoError(t, json.Unmarshal(text, &table))
		}
		require.Equal(t, s.Want, p.live(), "%s %d", s.Kind, s.Seed)
		n++
	}
	require.NoError(t, lines.Err())
	require.NotZero(t, n)
}

// Ranks are of one width, and sort as text.
func TestRanks(t *testing.T) {
	var all []string
	var table ranks.Table
	for _, at := range []time.Time{{}, time.Unix(0, 5), time.Unix(0, 6), time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)} {
		d := ranks.Document{Time: at, Place: 1 << 32, Subscription: true, Copies: []ranks.Copy{{ID: "1", Version: "v", At: at}, {ID: "2", At: at}}}
		changes, _ := table.Read(d)
		require.Len(t, changes, 2)
		for _, c := range changes {
			require.Len(t, c.Rank, 68)
			require.Empty(t, strings.Trim(c.Rank, "0123456789abcdefg"))
			all = append(all, c.Rank)
		}
	}
	require.True(t, slices.IsSorted(all), all)
}

// A poll of a document that has nothing but another time writes no row, and one with a new entry
// two: the new one, and the rank of the one that has left. A complete document writes what differs.
func TestRowsWritten(t *testing.T) {
	for _, isComplete := range []bool{false, true} {
		for _, isDated := range []bool{false, true} {
			var table ranks.Table
			p, newest := program{}, 20
			for poll := range 100 {
				now := 1000 + 10*poll
				isNew := poll%10 == 9
				if isNew {
					newest++
				}
				d := ranks.Document{Time: time.Unix(int64(now), 0), Place: int64(poll) << 32, Subscription: true, Complete: isComplete}
				for id := newest; id > newest-20; id-- {
					c := ranks.Copy{ID: fmt.Sprint(id), Version: fmt.Sprint("v", id)}
					if isDated {
						c.At = time.Unix(int64(id), 0)
					}
					d.Copies = append(d.Copies, c)
				}
				var changes []ranks.Change
				changes, table = table.Read(d)
				written := p.apply(d, changes)
				switch {
				case poll == 0:
					require.Equal(t, 20, written)
				case isNew:
					require.Equal(t, 2, written)
				default:
					require.Zero(t, written)
				}
				want := newest
				if isComplete {
					want = 20
				}
				require.Len(t, p.live(), want)
			}
		}
	}
}
