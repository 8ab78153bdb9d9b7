package harvest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/feedhistory/feedhistory/harvest"
)

// A Pool is a query for items by the time of their last change.
type Pool[T any] struct {
	Query harvest.Query[T]
	At    func(T) time.Time // when an item last changed
}

// Recent returns the most recent items of a range: about limit of them, because it never
// cuts through a group of equal times. It reports whether these are all.
func (p Pool[T]) Recent(ctx context.Context, start, end time.Time, limit int) (items []T, whole bool, err error) {
	limit = min(limit, math.MaxInt-1)
	items, err = p.ask(ctx, start, end, limit+1)
	if err != nil || len(items) <= limit {
		return items, true, err
	}
	oldest := p.At(items[limit-1])
	if !p.At(items[limit]).Equal(oldest) {
		return items[:limit], false, nil
	}
	group, err := p.ask(ctx, oldest, oldest.Add(time.Nanosecond), 0)
	if err != nil {
		return nil, false, err
	}
	newer := slices.IndexFunc(items, func(item T) bool { return p.At(item).Equal(oldest) })
	if items = slices.Concat(items[:newer], group); len(items) == 0 { // all have changed meanwhile
		return p.Recent(ctx, start, oldest, limit)
	}
	if !start.Before(oldest) {
		return items, true, nil
	}
	older, err := p.ask(ctx, start, oldest, 1)
	return items, len(older) == 0, err
}

// ask queries the pool, and checks the order.
func (p Pool[T]) ask(ctx context.Context, start, end time.Time, limit int) ([]T, error) {
	items, err := p.Query(ctx, start, end, limit)
	if err != nil {
		return nil, err
	}
	for i, item := range items {
		if i > 0 && p.At(item).After(p.At(items[i-1])) {
			return nil, fmt.Errorf("the query's item %d is newer than the one before it", i+1)
		}
	}
	return items, nil
}
