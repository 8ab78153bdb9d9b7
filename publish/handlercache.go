package publish

import "sync"

// A cache keeps the values that were used last, as far as they fit. There are
// two generations: what is used moves to the young one, and when that has half
// the room, it becomes the old one, whose values are forgotten.
type cache[V any] struct {
	half int64 // of the room, in whatever unit sizes are

	mu         sync.Mutex
	size       int64 // of the young ones
	young, old map[string]sized[V]
}

type sized[V any] struct {
	value V
	size  int64
}

func (c *cache[V]) get(key string) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := c.young[key]
	if !ok {
		if v, ok = c.old[key]; ok {
			c.add(key, v)
		}
	}
	return v.value, ok
}

// put keeps a value, unless it would take all the room.
func (c *cache[V]) put(key string, value V, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size -= c.young[key].size
	delete(c.young, key)
	if size <= c.half {
		c.add(key, sized[V]{value, size})
	}
}

func (c *cache[V]) add(key string, v sized[V]) {
	if c.young == nil || c.size+v.size > c.half {
		c.old, c.young, c.size = c.young, map[string]sized[V]{}, 0
	}
	delete(c.old, key)
	c.young[key] = v
	c.size += v.size
}
