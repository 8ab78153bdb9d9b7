package modifiedrange

import (
	"context"
	"encoding/json"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
)

// Keep harvests the collection into a mirror's store, from the mark stored with its feed
// there. The URL of the feed is the Harvester's.
//
// Keep commits each answer with the part of the range still to be asked for. So an
// interrupted harvest continues there, and repeats only the request under way.
//
// The stamps decide which state of an entry is the latest, and whether a deletion is, even
// if they are not the entries' update times.
//
// Missing parts are among the Gaps of the result. The error is the first document's,
// the store's or the context's.
func (c *Harvester) Keep(ctx context.Context, m *mirror.Mirror) (*mirror.Report, error) {
	const name = "modified-range"
	var from Mark
	if err := m.ReadMark(ctx, c.URL, name, &from); err != nil {
		return nil, err
	}
	harvest := c.Harvest(ctx, from)
	mark := func() (json.RawMessage, bool) {
		next, whole := harvest.Mark()
		if next == (Mark{}) {
			return nil, whole
		}
		mark, _ := json.Marshal(next) // cannot fail: the times were text before
		return mark, whole
	}
	return m.Merge(ctx, c.URL, mirror.Source{
		Name: name, Documents: harvest.Documents(), Stamp: func(e *feedhistory.Entry) time.Time { return harvest.stamp.of(e) },
		End: mark, Adds: from.Rest != Rest{},
		Mark: func() json.RawMessage {
			mark, _ := mark()
			return mark
		},
	})
}
