package mirror

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/ranks"
)

// A Ledger of a Poll is stored as JSON. What it remembers is in columns, each with one value of
// every entry or archive, and compressed: most values follow from the one before.

// A ledgerForm is a Poll's Ledger as it is stored. Kept, the JSON of the Feed and then columns, is
// compressed, so there is no U+0000 in it, which some databases refuse. Rows is the JSON of an
// earlierMemo.
type ledgerForm struct {
	Commits int64 `json:"commits"`
	walkID
	Kept []byte `json:"kept,omitempty"`
	Rows []byte `json:"rows,omitempty"`
}

var compressors = sync.Pool{New: func() any {
	w, _ := flate.NewWriter(nil, 5) // the default 6 takes longer for a hundredth less; the only error is that of a level
	return w
}}

func (k *memo) marshal(l ledger) ([]byte, error) {
	k = k.folded()
	state := clone(k.state)
	state.Ledger = Ledger{l: l}
	head, err := unescaped(state)
	if err != nil {
		return nil, err
	}
	c := &columns{}
	text := string(head)
	c.texts(1, func(int) *string { return &text })
	k.columns(c, &l)
	var b bytes.Buffer
	w := compressors.Get().(*flate.Writer)
	defer compressors.Put(w)
	w.Reset(&b)
	if _, err = w.Write(c.text); err == nil {
		err = w.Close()
	}
	if err != nil {
		return nil, err
	}
	return unescaped(ledgerForm{Commits: k.state.Commits, walkID: k.id, Kept: b.Bytes()})
}

// inflation is how many times as long a stored text may become, beyond a megabyte.
const inflation = 200

// unmarshalMemo reads what marshal has written. It returns nil for the Ledger of a Store.
func unmarshalMemo(text []byte) (k *memo, err error) {
	var form ledgerForm
	if err := json.Unmarshal(text, &form); err != nil || form.Kept == nil && form.Rows == nil {
		return nil, err
	}
	read := readMemo
	if form.Kept == nil {
		read = readEarlier
	}
	packed := append(form.Kept, form.Rows...)
	most := int64(len(packed))*inflation + 1<<20
	text, err = io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), most))
	switch {
	case err == nil && int64(len(text)) == most:
		err = errColumns
	case err == nil:
		k, err = read(text)
	}
	if err != nil {
		return nil, fmt.Errorf("mirror: the rows of a Ledger: %w", err)
	}
	k.state.Commits, k.id = form.Commits, form.walkID
	return k, nil
}

func readMemo(text []byte) (*memo, error) {
	c, head := readColumns(text), ""
	c.texts(1, func(int) *string { return &head })
	k := &memo{state: &Feed{}}
	if c.err != nil {
		return nil, c.err
	}
	if err := json.Unmarshal([]byte(head), k.state); err != nil {
		return nil, err
	}
	k.columns(c, &k.state.Ledger.l)
	if c.err == nil && len(c.text) > 0 {
		c.err = errColumns
	}
	return k, c.err
}

// columns writes or reads the lists. What follows from others is not written.
func (k *memo) columns(c *columns, l *ledger) {
	k.columnsOfRows(c, l.Shown)
	k.columnsOfOthers(c)
	k.columnsOfDocuments(c)
	columnsOfTable(c, l, k.rows)
}

// columnsOfRows are those of rows, which begin with the ones of the entries shown.
func (k *memo) columnsOfRows(c *columns, shown []string) {
	n := c.count(len(k.rows), 20)
	if c.isRead {
		k.rows = make([]*Record, n)
		for i := range k.rows {
			k.rows[i] = &Record{Feed: k.state.URL, Content: Content{Format: feedhistory.FormatAtom}}
		}
	}
	column := func(of func(*Record) *string) { c.texts(n, func(i int) *string { return of(k.rows[i]) }) }
	times := func(of func(*Record) *time.Time) { c.times(n, func(i int) *time.Time { return of(k.rows[i]) }) }
	numbers := func(of func(*Record) *int64) { c.numbers(n, func(i int) *int64 { return of(k.rows[i]) }) }
	c.likely(n, func(i int) *string { return &k.rows[i].ID }, func(i int) string {
		if i < len(shown) {
			return shown[i]
		}
		return ""
	})
	column(func(r *Record) *string { return (*string)(&r.State) })
	column(func(r *Record) *string { return &r.Copy.Digest })
	column(func(r *Record) *string { return &r.Content.Data })
	times(func(r *Record) *time.Time { return &r.Copy.At })
	times(func(r *Record) *time.Time { return &r.Copy.Rank.Time })
	times(func(r *Record) *time.Time { return &r.Tombstone.When })
	times(func(r *Record) *time.Time { return &r.Tombstone.Rank.Time })
	numbers(func(r *Record) *int64 { return &r.Copy.Rank.Seq })
	numbers(func(r *Record) *int64 { return &r.Tombstone.Rank.Seq })
	numbers(func(r *Record) *int64 { return &r.Absence })
	numbers(func(r *Record) *int64 { return &r.FirstCommit })
	times(func(r *Record) *time.Time { return &r.Added })
	c.flags(n, func(i int) *bool { return &k.rows[i].Archived })
	c.flags(n, func(i int) *bool { return &k.rows[i].Content.WeakID })
	k.ownTimes(c, n, func(r *Record) *time.Time { return &r.Content.Updated })
	k.ownTimes(c, n, func(r *Record) *time.Time { return &r.Content.Published })
	for _, r := range k.rows {
		if c.isRead {
			r.LastCommit, r.Changed = r.FirstCommit, r.Added
		}
		if c.isRead && r.Copy.Digest == "" {
			r.Content = Content{}
		}
	}
}

// ownTimes is a column of times, usually those of the copies.
func (k *memo) ownTimes(c *columns, n int, of func(*Record) *time.Time) {
	is, others := make([]bool, n), make([]time.Time, n)
	for i, r := range k.rows {
		if is[i] = of(r).Equal(r.Copy.At); !is[i] {
			others[i] = *of(r)
		}
	}
	c.flags(n, func(i int) *bool { return &is[i] })
	c.times(n, func(i int) *time.Time { return &others[i] })
	for i, r := range k.rows {
		if c.isRead && is[i] {
			*of(r) = r.Copy.At
		} else if c.isRead {
			*of(r) = others[i]
		}
	}
}

func (k *memo) columnsOfOthers(c *columns) {
	n := c.count(len(k.others), 8)
	if c.isRead {
		k.others = make([]otherID, n)
	}
	c.words(n, func(i int) *uint64 { return (*uint64)(&k.others[i]) })
}

// fullyKnown is how many of the newest archives are stored with all their validators. Of the others,
// one is enough to ask again.
const fullyKnown = 4

// columnsOfDocuments are those of the archives, the newest first.
func (k *memo) columnsOfDocuments(c *columns) {
	n := c.count(len(k.documents), 20)
	docs := make([]DocumentRecord, n)
	for i := range docs {
		if !c.isRead {
			docs[i] = k.documents[i].bare(i < fullyKnown)
		}
	}
	text := func(of func(*DocumentRecord) *string) { c.texts(n, func(i int) *string { return of(&docs[i]) }) }
	number := func(of func(*DocumentRecord) *int64) { c.numbers(n, func(i int) *int64 { return of(&docs[i]) }) }
	flag := func(of func(*DocumentRecord) *bool) { c.flags(n, func(i int) *bool { return of(&docs[i]) }) }
	own := func(i int) string { return docs[i].URL }
	text(func(d *DocumentRecord) *string { return &d.URL })
	c.lists(n, func(i int) *[]string { return &docs[i].Names }, own)
	c.lists(n, func(i int) *[]string { return &docs[i].Further }, func(int) string { return "" })
	c.likely(n, func(i int) *string { return &docs[i].Known.URL }, own)
	c.likely(n, func(i int) *string { return &docs[i].Known.Older }, func(i int) string {
		if i+1 < n {
			return docs[i+1].URL
		}
		return ""
	})
	text(func(d *DocumentRecord) *string { return &d.Known.Instead })
	text(func(d *DocumentRecord) *string { return (*string)(&d.Known.Kind) })
	text(func(d *DocumentRecord) *string { return &d.Known.ETag })
	text(func(d *DocumentRecord) *string { return &d.Known.LastModified })
	text(func(d *DocumentRecord) *string { return &d.Known.Digest })
	text(func(d *DocumentRecord) *string { return &d.Digest })
	flag(func(d *DocumentRecord) *bool { return &d.Known.Formats })
	flag(func(d *DocumentRecord) *bool { return &d.Known.Lost })
	flag(func(d *DocumentRecord) *bool { return &d.Known.Damaged })
	c.times(n, func(i int) *time.Time { return &docs[i].Rank.Time })
	c.times(n, func(i int) *time.Time { return &docs[i].Read })
	number(func(d *DocumentRecord) *int64 { return &d.Rank.Seq })
	number(func(d *DocumentRecord) *int64 { return &d.First })
	number(func(d *DocumentRecord) *int64 { return &d.Last })
	number(func(d *DocumentRecord) *int64 { return &d.Altered })
	if c.isRead {
		k.documents = make([]*DocumentRecord, n)
		for i := range docs {
			k.documents[i] = &docs[i]
		}
	}
}

// bare returns the record with what a Ledger remembers of an archive.
func (d DocumentRecord) bare(isFully bool) DocumentRecord {
	d.Entries, d.Oldest, d.Newest = 0, time.Time{}, time.Time{}
	if isFully {
		return d
	}
	if d.Known.Digest = ""; d.Known.LastModified != "" {
		d.Known.ETag = ""
	}
	return d
}

// columnsOfTable are those of what is known of the program's rows, in the order of the rows here.
func columnsOfTable(c *columns, l *ledger, rows []*Record) {
	t := &ranks.Table{}
	if l.Table != nil {
		*t = *l.Table
	}
	for _, n := range []*int64{&t.Reading, &t.Epoch, &t.Generation, &t.Newest.Place} {
		c.number(n)
	}
	c.flags(1, func(int) *bool { return &t.Alone })
	c.flags(1, func(int) *bool { return &t.Gone })
	c.times(1, func(int) *time.Time { return &t.Newest.Time })
	c.times(1, func(int) *time.Time { return &t.Latest })
	n := c.count(len(t.Rows), 9)
	if c.isRead {
		t.Rows = make([]ranks.Row, n)
	} else {
		t.Rows = inOrder(t.Rows, rows)
	}
	row := func(i int) *Record {
		if i < len(rows) {
			return rows[i]
		}
		return &Record{}
	}
	c.likely(n, func(i int) *string { return &t.Rows[i].ID }, func(i int) string { return row(i).ID })
	c.likely(n, func(i int) *string { return &t.Rows[i].Version }, func(i int) string { return row(i).Copy.Digest })
	parts := make([][]string, n)
	for i := range parts {
		parts[i] = ranks.Split(t.Rows[i].Rank)
	}
	for part := range ranks.Parts {
		c.likely(n, func(i int) *string { return &parts[i][part] }, func(i int) string {
			switch part {
			case 1:
				return ranks.OfTime(row(i).Copy.At)
			default:
				return ""
			}
		})
	}
	for i := range parts {
		t.Rows[i].Rank = strings.Join(parts[i], "")
	}
	c.flags(n, func(i int) *bool { return &t.Rows[i].Behind })
	c.flags(n, func(i int) *bool { return &t.Rows[i].Unsure })
	if c.isRead && t.Reading > 0 {
		l.Table = t
	}
}

// inOrder returns the rows of a table in the order of others.
func inOrder(table []ranks.Row, rows []*Record) []ranks.Row {
	at := make(map[string]int, len(table))
	for i, t := range table {
		at[t.ID] = i
	}
	ordered := make([]ranks.Row, 0, len(table))
	for _, r := range rows {
		if i, ok := at[r.ID]; ok {
			ordered = append(ordered, table[i])
			delete(at, r.ID)
		}
	}
	for i, t := range table { // the others come last
		if at, ok := at[t.ID]; ok && at == i {
			ordered = append(ordered, t)
		}
	}
	return ordered
}

// An earlierMemo is a memo as versions before stored it: with a row of each entry.
type earlierMemo struct {
	Feed      *Feed             `json:"feed"`
	Documents []*DocumentRecord `json:"documents,omitempty"`
	Entries   []struct {
		ID   string `json:"id"`
		Post string `json:"post"`
		*Record
	} `json:"entries,omitempty"`
}

func readEarlier(text []byte) (*memo, error) {
	var form earlierMemo
	if err := json.Unmarshal(text, &form); err != nil {
		return nil, err
	}
	if form.Feed == nil {
		return nil, errors.New("no feed")
	}
	k := &memo{state: form.Feed}
	for _, d := range form.Documents {
		if d == nil {
			return nil, errors.New("null in place of a document")
		}
		d.Digest = d.Digest[:min(len(d.Digest), shortDigest)]
		k.documents = append(k.documents, d)
	}
	for _, e := range form.Entries {
		if r := e.Record; r != nil {
			r.ID, r.Feed = e.ID, form.Feed.URL
			digest := strings.TrimPrefix(r.Copy.Digest, "gone:")
			r.Copy.Digest = digest[:min(len(digest), shortDigest)]
			r.Content.Data = contentKeys{shorter(r.Content.Title), shorter(r.Content.Link), shorter(e.Post)}.String()
			r.Content.Title, r.Content.Link = "", ""
			k.rows = append(k.rows, r)
		}
	}
	return k, nil
}
