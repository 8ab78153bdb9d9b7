package publish

import "sync"

// A cache keeps the most recently used values, as far as they fit. It has two
// generations: a value moves to the young one when it is used. When the young one has
// half the size, it becomes the old one, and the old one's values are forgotten.
type cache[V any] struct {
	half int64 // half the maximum size, in whatever unit sizes have

	mu         sync.Mutex
	size       int64 // the size of the young generation
	young, old map[string]cacheItem[V]
}

type cacheItem[V any] struct {
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

// put keeps a value, unless it alone would fill the cache.
func (c *cache[V]) put(key string, value V, size int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size -= c.young[key].size
	delete(c.young, key)
	if size <= c.half {
		c.add(key, cacheItem[V]{value, size})
	}
}

func (c *cache[V]) add(key string, v cacheItem[V]) {
	if c.young == nil || c.size+v.size > c.half {
		c.old, c.young, c.size = c.young, map[string]cacheItem[V]{}, 0
	}
	delete(c.old, key)
	c.young[key] = v
	c.size += v.size
}
