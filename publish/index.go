package publish

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"io"
	"io/fs"
	"slices"
	"sort"

	"github.com/feedhistory/feedhistory"
)

// The index of the archives says which entries are published, without the archives being read. Its
// parts are hidden files beside the archives. Each part covers consecutive archives, and is named
// after the newest of them: as an archive's name depends on everything older, a part belongs to
// one chain only. Everything in it is in the archives, too: a part that is missing or damaged is
// made again, and an archive is compared with its part before anything in that decides.

// The sizes of the parts. Archives are read rather than indexed while they are few. A part is
// written again with newer archives, until it is this long, if it is at most so many times as
// long as they are.
const (
	leastIndexed = 8
	mostIndexed  = 1 << 16
	mostOlder    = 4
)

// A shownVersion is the version of an entry in the subscription document, or its deletion.
type shownVersion struct {
	version
	entry *feedhistory.Entry
	given bool
}

// An index has everything published, to be compared with a source.
type index struct {
	p      *session
	listed map[string]bool // the names below the directory of the archives
	shown  map[string]*shownVersion
	parts  []*indexPart // newest first
	lost   bool         // an archive is missing
	live   int          // how many ids are published, and not deleted
	given  int          // how many of these the source has
	fresh  [][]idKey    // the ids that only the source has, in pieces that are never copied
	gone   []string     // superseded parts
	buffer []byte
}

// openIndex opens the index, and brings it up to date. It ends at a lost archive unless it is to pass it.
func (p *session) openIndex(s *state, pass bool) (x *index, err error) {
	x = &index{p: p, shown: map[string]*shownVersion{}}
	if s.doc != nil {
		for _, it := range s.items() {
			if x.shown[it.id] == nil {
				x.shown[it.id] = &shownVersion{version: versionOf(it), entry: it.entry}
			}
		}
	}
	if s.prev == "" {
		return x, x.count()
	}
	if x.listed, err = p.list(); err == nil {
		err = x.walk(s.prev, pass)
	}
	if err == nil && (pass || !x.lost) {
		err = x.count()
	}
	if err != nil {
		x.closeAll()
	}
	return x, err
}

func versionOf(it item) version {
	v := version{time: it.time, deleted: it.entry == nil}
	if it.entry != nil {
		v.as = digestOf(textOf(it.entry))
	}
	return v
}

// list returns the names below the directory of the archives.
func (p *session) list() (names map[string]bool, err error) {
	names = map[string]bool{}
	err = fs.WalkDir(p.Output, p.dir(), func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			names[name] = true
		}
		return err
	})
	if isNotExist(err) {
		err = nil
	}
	return names, err
}

func (x *index) closeAll() {
	for _, part := range x.parts {
		_ = part.close() // it was read only
	}
	x.parts = nil
}

// walk opens the parts of the index, and makes those missing.
func (x *index) walk(newest string, pass bool) error {
	d := &indexDraft{}
	for name := newest; name != ""; {
		part, err := x.open(name)
		if err != nil {
			return err
		}
		if part != nil {
			if d.archives() >= x.p.leastIndexed() && x.p.joins(d, part) {
				err = d.addPart(part)
				x.gone = append(x.gone, indexName(part.newest()))
				err = cmp.Or(err, part.close())
			} else if err = x.end(d); err == nil {
				d, x.parts = &indexDraft{}, append(x.parts, part)
			}
			if err != nil {
				return err
			}
			name = part.Prev
			continue
		}
		a, err := x.p.archive(name)
		if isNotExist(err) {
			if x.lost = true; !pass {
				return nil
			}
			if err := x.end(d); err != nil { // no part may seem to have the lost archive
				return err
			}
			d = &indexDraft{}
			if a, err = x.p.before(name); a == nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		d.addOlder(a)
		if name = a.prev; len(d.records) >= x.p.mostIndexed() {
			if err := x.end(d); err != nil {
				return err
			}
			d = &indexDraft{}
		}
	}
	return cmp.Or(x.end(d), x.p.remove(x.gone))
}

func (p *Publisher) leastIndexed() int { return cmp.Or(p.least, leastIndexed) }
func (p *Publisher) mostIndexed() int  { return cmp.Or(p.most, mostIndexed) }

// joins reports whether a part is to be written again together with newer archives.
func (p *Publisher) joins(d *indexDraft, part *indexPart) bool {
	return !part.isFile || part.Records <= mostOlder*len(d.records) && part.Records+len(d.records) <= p.mostIndexed()
}

// open opens the part with a newest archive; nil if there is none that can be trusted.
func (x *index) open(archive string) (*indexPart, error) {
	name := indexName(archive)
	if !x.listed[name] {
		return nil, nil
	}
	f, err := x.p.Output.Open(name)
	if err != nil {
		return nil, err
	}
	b := bytes.NewBuffer(x.buffer[:0])
	if _, err = b.ReadFrom(f); err != nil {
		return nil, cmp.Or(err, f.Close())
	}
	data := b.Bytes()
	file, ok := f.(io.ReaderAt)
	if ok {
		x.buffer = data
	} else {
		file = bytes.NewReader(data)
	}
	part := newIndexPart(data, file)
	if part == nil || part.newest() != archive || slices.ContainsFunc(part.Archives, func(a indexedArchive) bool { return !x.listed[a.Name] }) {
		return nil, f.Close()
	}
	part.isFile, part.close = true, f.Close
	for _, a := range part.Archives[1:] { // which a killed call has not removed
		if older := indexName(a.Name); x.listed[older] {
			x.gone = append(x.gone, older)
		}
	}
	return part, nil
}

// end opens the part of a draft, which is written if it has enough archives.
func (x *index) end(d *indexDraft) error {
	if d.archives() == 0 {
		return nil
	}
	data := d.encode()
	part := newIndexPart(data, bytes.NewReader(data))
	if d.archives() >= x.p.leastIndexed() {
		name := indexName(d.newest())
		if err := x.p.Output.Put(x.p.ctx, name, data); err != nil {
			return err
		}
		if f, err := x.p.Output.Open(name); err != nil {
			return err
		} else if file, ok := f.(io.ReaderAt); ok {
			part.file, part.close = file, f.Close
		} else if err := f.Close(); err != nil {
			return err
		}
		part.isFile = true
	}
	for i := range part.checked {
		part.checked[i] = i < d.read
	}
	x.parts = append(x.parts, part)
	return nil
}

// remove removes superseded parts.
func (p *session) remove(names []string) error {
	for _, name := range names {
		if err := p.Output.Remove(p.ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// search returns the record of an id in the newest part with one; nil if there is none.
func (x *index) search(id digest) (part *indexPart, i int, r indexRecord, err error) {
	for _, part := range x.parts {
		if i, r, err = part.find(id); err != nil || i >= 0 {
			return part, i, r, err
		}
	}
	return nil, -1, r, nil
}

// isNewest reports whether no newer part, nor the subscription document, has an id of a part.
func (x *index) isNewest(part *indexPart, id digest, shown map[digest]bool) (bool, error) {
	for _, newer := range x.parts {
		if newer == part {
			break
		}
		if i, _, err := newer.find(id); err != nil || i >= 0 {
			return false, err
		}
	}
	return !shown[id], nil
}

// count counts the published entries: the records of all parts, but each id once.
func (x *index) count() error {
	x.live, x.given = 0, 0
	for _, part := range x.parts {
		x.live += part.Live
		for i := range part.Records {
			if part.isGiven(i) {
				r, err := part.record(i)
				if err != nil {
					return err
				}
				if !r.deleted {
					x.given++
				}
			}
		}
	}
	if err := x.countTwice(); err != nil {
		return err
	}
	for id, v := range x.shown {
		_, i, r, err := x.search(digestOf(id))
		if err != nil {
			return err
		}
		if i >= 0 && !r.deleted {
			x.live--
		}
		if !v.deleted {
			x.live++
		}
		if v.given && !v.deleted {
			x.given++
		}
	}
	return nil
}

// countTwice subtracts the records whose ids are in newer parts.
func (x *index) countTwice() error {
	at := make([]int, len(x.parts))
	for {
		least, found := uint64(0), 0
		for i, part := range x.parts {
			if at[i] == part.Records {
				continue
			}
			switch key := part.key(at[i]); {
			case found == 0 || key < least:
				least, found = key, 1
			case key == least:
				found++
			}
		}
		if found == 0 {
			return nil
		}
		newest := map[digest]bool{}
		for i, part := range x.parts {
			for ; at[i] < part.Records && part.key(at[i]) == least; at[i]++ {
				if found == 1 {
					continue
				}
				r, err := part.record(at[i])
				if err != nil {
					return err
				}
				if newest[r.id] && !r.deleted {
					x.live--
				}
				newest[r.id] = true
			}
		}
	}
}

// take returns the published version of an entry that the source has, if there is one, and then
// whether the source has had it before.
func (x *index) take(id string) (old version, published, again bool, err error) {
	if v := x.shown[id]; v != nil {
		if again = v.given; !again && !v.deleted {
			x.given++
		}
		v.given = true
		return v.version, true, again, nil
	}
	key := digestOf(id)
	part, i, r, err := x.trusted(key)
	if err != nil {
		return old, false, false, err
	}
	if part == nil {
		if n := len(x.fresh); n == 0 || len(x.fresh[n-1]) == cap(x.fresh[n-1]) {
			x.fresh = append(x.fresh, make([]idKey, 0, 16<<min(n, 10)))
		}
		last := &x.fresh[len(x.fresh)-1]
		*last = append(*last, idKey(key[:]))
		return old, false, false, nil
	}
	if again = part.isGiven(i); !again && !r.deleted {
		x.given++
	}
	part.give(i)
	return version{time: r.time, deleted: r.deleted, as: r.as}, true, again, nil
}

// trusted returns the record of an id whose archive is as the record says; a nil part if there is none.
func (x *index) trusted(id digest) (part *indexPart, i int, r indexRecord, err error) {
	for ok := false; !ok; {
		if part, i, r, err = x.search(id); err != nil || part == nil {
			return part, i, r, err
		}
		if ok, err = x.check(part, r.archive); err != nil {
			return nil, -1, r, err
		}
	}
	return part, i, r, nil
}

// check reports whether an archive is as its part says. If not, the part is made again.
func (x *index) check(part *indexPart, at int) (bool, error) {
	if part.checked[at] {
		return true, nil
	}
	name := part.Archives[at].Name
	text, err := x.p.read(name)
	if err != nil {
		return false, err
	}
	if a := (&archive{name: name, text: text}); a.indexed() != part.Archives[at] {
		return false, x.renew(part)
	}
	part.checked[at] = true
	return true, nil
}

// renew reads all archives of a part again, because somebody has changed one.
func (x *index) renew(old *indexPart) error {
	d := &indexDraft{}
	for _, a := range old.Archives {
		a, err := x.p.archive(a.Name)
		if err != nil {
			return err
		}
		d.addOlder(a)
	}
	data := d.encode()
	part := newIndexPart(data, bytes.NewReader(data))
	for i := range part.checked {
		part.checked[i] = true
	}
	for i := range old.Records {
		if old.isGiven(i) {
			r, err := old.record(i)
			if err != nil {
				return err
			}
			if at, _, err := part.find(r.id); err != nil {
				return err
			} else if at >= 0 {
				part.give(at)
			}
		}
	}
	x.parts[slices.Index(x.parts, old)] = part
	err := old.close()
	if old.isFile {
		part.isFile = true
		err = cmp.Or(err, x.p.Output.Put(x.p.ctx, indexName(part.newest()), data))
	}
	return cmp.Or(err, x.count())
}

// words returns the words of the published version of an entry in an archive or the subscription document.
func (x *index) words(id string) (digest, error) {
	if v := x.shown[id]; v != nil {
		return x.p.words(v.entry), nil
	}
	key := digestOf(id)
	part, _, r, err := x.search(key)
	if err != nil || part == nil {
		return digest{}, err
	}
	if part.words[r.archive] == nil {
		a, err := x.p.archive(part.Archives[r.archive].Name)
		if err != nil {
			return digest{}, err
		}
		all := make(map[digest]digest, len(a.doc.Entries))
		for _, e := range a.doc.Entries {
			id := digestOf(e.ID)
			if _, ok := all[id]; !ok {
				all[id] = x.p.words(e)
			}
		}
		part.words[r.archive] = all
	}
	return part.words[r.archive][key], nil
}

// shownIDs returns the digests of the ids in the subscription document.
func (x *index) shownIDs() map[digest]bool {
	ids := make(map[digest]bool, len(x.shown))
	for id := range x.shown {
		ids[digestOf(id)] = true
	}
	return ids
}

// missing yields the published entries the source does not have.
func (x *index) missing(yield func(id string, v version)) error {
	for id, v := range x.shown {
		if !v.given && !v.deleted {
			yield(id, v.version)
		}
	}
	shown := x.shownIDs()
	for _, part := range x.parts {
		gone, has := map[digest]indexRecord{}, make([]bool, len(part.Archives))
		for i := range part.Records {
			if part.isGiven(i) {
				continue
			}
			r, err := part.record(i)
			if err != nil {
				return err
			}
			isNewest, err := x.isNewest(part, r.id, shown)
			if err != nil {
				return err
			}
			if isNewest && !r.deleted {
				gone[r.id], has[r.archive] = r, true
			}
		}
		for at, archive := range part.Archives {
			if !has[at] {
				continue
			}
			a, err := x.p.archive(archive.Name)
			if err != nil {
				return err
			}
			for _, it := range a.items() {
				id := digestOf(it.id)
				if r, ok := gone[id]; ok && r.archive == at {
					delete(gone, id)
					yield(it.id, version{time: r.time})
				}
			}
		}
	}
	return nil
}

// A newTrace is a trace of the entry with a number among those new in a source.
type newTrace struct {
	key   uint64
	entry int32
}

// renamed returns the number of new entries with a trace of a published entry that the source no
// longer has.
func (x *index) renamed(found []newTrace) (n int, err error) {
	slices.SortFunc(found, func(a, b newTrace) int { return cmp.Compare(a.key, b.key) })
	for ok := len(found) == 0 || x.given == x.live; !ok; {
		if n, ok, err = x.countRenamed(found); err != nil {
			return 0, err
		}
	}
	return n, nil
}

// countRenamed is renamed, unless it finds a part that is not as its archives, and made again.
func (x *index) countRenamed(found []newTrace) (n int, ok bool, err error) {
	isSound := true
	entries := map[int32]bool{}
	match := func(key uint64, isGone func() (bool, error)) error {
		i := sort.Search(len(found), func(i int) bool { return found[i].key >= key })
		for gone := false; i < len(found) && found[i].key == key; i++ {
			if !gone {
				var err error
				if gone, err = isGone(); err != nil || !gone {
					return err
				}
			}
			entries[found[i].entry] = true
		}
		return nil
	}
	shown := x.shownIDs()
	for _, v := range x.shown {
		if v.given || v.deleted {
			continue
		}
		for _, trace := range traces(v.entry) {
			if err := match(traceKey(trace), func() (bool, error) { return true, nil }); err != nil {
				return 0, false, err
			}
		}
	}
	for _, part := range x.parts {
		data := make([]byte, part.Traces*traceSize)
		if err := part.read(data, int64(part.Records)*recordSize); err != nil {
			return 0, false, err
		}
		for ; len(data) > 0 && isSound; data = data[traceSize:] {
			i := int(binary.BigEndian.Uint32(data[8:]))
			err := match(binary.BigEndian.Uint64(data), func() (bool, error) {
				r, err := part.record(i)
				if err != nil || r.deleted || part.isGiven(i) {
					return false, err
				}
				isNewest, err := x.isNewest(part, r.id, shown)
				if err != nil || !isNewest {
					return false, err
				}
				isSound, err = x.check(part, r.archive)
				return isSound, err
			})
			if err != nil || !isSound {
				return 0, false, err
			}
		}
	}
	return len(entries), true, nil
}

// An indexer indexes the archives closed in a call.
type indexer struct {
	p     *session
	parts []*indexPart // of the archives before
	d     indexDraft
	gone  []string // superseded parts
}

// add adds an archive, and returns the file of a part that is long enough; nil if none is.
func (n *indexer) add(a *archive) (*file, error) {
	n.d.addNewer(a)
	if err := n.join(func(part *indexPart) bool { return !part.isFile }); err != nil || len(n.d.records) < n.p.mostIndexed() {
		return nil, err
	}
	f := &file{indexName(a.name), n.d.encode()}
	n.d, n.parts = indexDraft{}, nil
	return f, nil
}

// join adds the parts before, as long as they are to be written again.
func (n *indexer) join(joins func(*indexPart) bool) error {
	for ; len(n.parts) > 0 && n.parts[0].newest() == n.d.prev && joins(n.parts[0]); n.parts = n.parts[1:] {
		if err := n.d.addPart(n.parts[0]); err != nil {
			return err
		}
		if n.parts[0].isFile {
			n.gone = append(n.gone, indexName(n.parts[0].newest()))
		}
	}
	return nil
}

// end returns the file of the last part, which takes the place of shorter ones before it; nil if
// there are too few archives.
func (n *indexer) end() (*file, error) {
	if n.d.archives() < n.p.leastIndexed() {
		return nil, nil
	}
	if err := n.join(func(part *indexPart) bool { return n.p.joins(&n.d, part) }); err != nil {
		return nil, err
	}
	return &file{indexName(n.d.newest()), n.d.encode()}, nil
}

// twice returns an id that is there twice, of those in any order; false if there is none.
func twice(ids []idKey) (idKey, bool) {
	slices.SortFunc(ids, func(a, b idKey) int { return bytes.Compare(a[:], b[:]) })
	for i := range max(len(ids)-1, 0) {
		if ids[i] == ids[i+1] {
			return ids[i], true
		}
	}
	return idKey{}, false
}
