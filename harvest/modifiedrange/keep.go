package modifiedrange

import (
	"context"
	"encoding/json"

	"github.com/feedhistory/feedhistory/mirror"
)

// Keep syncs the collection into a mirror's store, from the state that is
// stored with its feed there, and stores the next state in the same commit as
// the last document. The URL of the feed is the Client's.
//
// What is missing is among the Gaps of the result; the state then stays as it
// was. The error is that of the first document, the store's or the context's.
func (c *Client) Keep(ctx context.Context, m *mirror.Mirror) (*mirror.Changes, error) {
	const name = "modified-range"
	var from State
	if err := m.ReadMark(ctx, c.URL, name, &from); err != nil {
		return nil, err
	}
	sync := c.Sync(ctx, from)
	return m.Merge(ctx, c.URL, mirror.Source{
		Name: name, Documents: sync.Documents(),
		End: func() (json.RawMessage, bool) {
			next, whole := sync.State()
			if !whole {
				return nil, false
			}
			mark, _ := json.Marshal(next) // cannot fail: the time was text before
			return mark, true
		},
	})
}
