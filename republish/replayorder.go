package republish

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"slices"
	"strconv"
	"time"

	"github.com/feedhistory/feedhistory/mirror"
)

// The order of a replay is the order of time, as the mirror was at a version of
// the feed. An entry edited later, or dated back, would move,
// so the order is stored when it is first requested. If it is lost, it is made
// again as well as possible.

// knownPlaces are the places of a feed's entries at a version, in the order in
// which they came to the mirror.
type knownPlaces struct {
	version int64
	list    []place
	lost    loss
}

type place struct {
	placedEntry
	first, change int64
	live          bool
}

// placesOf returns the places of all entries with content.
func (s *replays) placesOf(ctx context.Context, feed *mirror.Feed) (knownPlaces, error) {
	if known, ok := s.places.Get(feed.URL); ok && known.version == feed.Commits {
		return known, nil
	}
	now := knownPlaces{version: feed.Commits}
	var list []place
	for r, err := range s.store.Entries(ctx, mirror.Query{Feed: feed.URL, Deleted: true}) {
		if err != nil {
			return now, err
		}
		p := place{placedEntry{id: r.ID, time: r.Time(), added: r.Added}, r.FirstCommit, r.LastCommit, r.State == mirror.Live}
		if !p.live {
			p.gone = r.Changed
		} else if _, err := r.Entry(); err != nil {
			s.logger.ErrorContext(ctx, "an entry cannot be published", "feed", feed.URL, "entry", r.ID, "err", err)
			now.lost = now.lost.add(r.ID)
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b place) int { return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.id, b.id)) })
	now.list = slices.CompactFunc(list, func(a, b place) bool { return a.id == b.id }) // an entry changed meanwhile comes twice
	s.places.Put(feed.URL, now)
	return now, nil
}

// asOf returns the version at which the order of a replay is fixed if its
// address does not say: the version when the replay started or, if the feed had
// no entries yet, a day after its first entry came.
func asOf(list []place, start time.Time) (version int64) {
	if len(list) == 0 {
		return 0
	}
	first := slices.MinFunc(list, func(a, b place) int { return a.added.Compare(b.added) }).added
	if start.Before(first) {
		start = first.Add(24 * time.Hour)
	}
	for _, p := range list {
		if !p.added.After(start) {
			version = max(version, p.first)
		}
	}
	return version
}

// ordered returns the entries of a replay in its order, and those added to the
// mirror later.
func (s *replays) ordered(ctx context.Context, feed *mirror.Feed, name string, r *Replay, list []place) (order, later []placedEntry, err error) {
	asof := r.asof
	switch {
	case asof > feed.Commits:
		return nil, nil, wrongAddress("asof=" + strconv.FormatInt(asof, 10) + ": the mirror has no such version yet")
	case asof == 0:
		asof = asOf(list, r.start)
	}
	frozen, err := s.frozen(ctx, name, asof, list)
	if err != nil {
		return nil, nil, err
	}
	known := make(map[string]*place, len(list))
	for i := range list {
		known[list[i].id] = &list[i]
		if list[i].first > asof {
			later = append(later, list[i].placedEntry)
		}
	}
	for i, id := range frozen.IDs {
		p := placedEntry{id: id, time: frozen.Times[i], gone: time.Unix(0, 0)} // the mirror has forgotten it
		if is := known[id]; is != nil {
			p.added, p.gone = is.added, is.gone
		}
		order = append(order, p)
	}
	if r.from == "" {
		return order, later, nil
	}
	at := slices.IndexFunc(order, func(p placedEntry) bool { return p.id == r.from })
	if at < 0 {
		return nil, nil, wrongAddress("from=" + r.from + ": there was no such entry then")
	}
	return order[at:], later, nil
}

// A frozenOrder is an order as it is stored.
type frozenOrder struct {
	IDs   []string    `json:"ids"`
	Times []time.Time `json:"times"`
}

// freeze makes the order of the entries at a version. An entry edited
// since then is ordered by its present time.
func freeze(list []place, asof int64) (f frozenOrder) {
	var order []place
	for _, p := range list {
		if p.first <= asof && (p.live || p.change > asof) {
			order = append(order, p)
		}
	}
	slices.SortFunc(order, func(a, b place) int { return cmp.Or(a.time.Compare(b.time), cmp.Compare(a.id, b.id)) })
	for _, p := range order {
		f.IDs, f.Times = append(f.IDs, p.id), append(f.Times, p.time)
	}
	return f
}

// mostFrozen is the maximum number of entries in all stored orders of a feed
// together, because anybody can request one.
const mostFrozen = 500_000

const ordersName = ".orders.json"

func orderName(asof int64) string { return ".order-" + strconv.FormatInt(asof, 10) + ".json.gz" }

// frozen returns the order of a feed at a version, and stores it.
func (s *replays) frozen(ctx context.Context, name string, asof int64, list []place) (f frozenOrder, err error) {
	defer s.locks.lock(name + " orders")()
	key := name + "\n" + strconv.FormatInt(asof, 10)
	if f, ok := s.orders.Get(key); ok {
		return f, nil
	}
	out := subOutput{s.out, name}
	data, err := fs.ReadFile(out, orderName(asof))
	switch {
	case err == nil:
		f, err = readOrder(data)
	case errors.Is(err, fs.ErrNotExist):
		f = freeze(list, asof)
		err = keepOrder(ctx, out, asof, f)
	}
	if err == nil {
		s.orders.Put(key, f)
	}
	return f, err
}

func readOrder(data []byte) (f frozenOrder, err error) {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return f, err
	}
	data, err = io.ReadAll(z)
	if err == nil {
		err = json.Unmarshal(data, &f)
	}
	if err == nil && len(f.IDs) != len(f.Times) {
		err = errors.New("an order of a replay is damaged")
	}
	return f, err
}

// keepOrder stores an order, unless there are too many.
func keepOrder(ctx context.Context, out subOutput, asof int64, f frozenOrder) error {
	kept := map[int64]int{} // the number of entries in each order
	data, err := fs.ReadFile(out, ordersName)
	if err == nil {
		err = json.Unmarshal(data, &kept)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	all := 0
	for _, n := range kept {
		all += n + 100
	}
	if all > 0 && all+len(f.IDs) > mostFrozen {
		return nil
	}
	data, err = json.Marshal(f)
	if err != nil {
		return err
	}
	if err := out.Put(ctx, orderName(asof), zipped(data)); err != nil {
		return err
	}
	kept[asof] = len(f.IDs)
	if data, err = json.Marshal(kept); err != nil {
		return err
	}
	return out.Put(ctx, ordersName, data)
}
