package serve

import (
	"cmp"
	"sync"
)

// A Cache keeps the most recently used values, as far as they fit. It is for
// programs that make documents or pages anew when a feed has changed. The zero
// value is ready to use. Several goroutines may use it at the same time.
//
// It has two generations. A value that is used moves to the young one. When the
// young one is full, it becomes the old one, and the old one's values are
// forgotten.
type Cache[K comparable, V any] struct {
	// Half is half the capacity, in the unit of the sizes. The Cache never
	// forgets the values used last, up to this size. Zero means 2,000; a
	// Cache with a negative one keeps nothing.
	Half int64

	mu         sync.Mutex
	size       int64 // of the young generation
	young, old map[K]cacheItem[V]
}

type cacheItem[V any] struct {
	value V
	size  int64
}

// Get returns the value of a key, and whether the Cache has one.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	if c == nil {
		return value, false
	}
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

// Put keeps a value of size one.
func (c *Cache[K, V]) Put(key K, value V) { c.PutSized(key, value, 1) }

// PutSized keeps a value, unless it is larger than Half.
func (c *Cache[K, V]) PutSized(key K, value V, size int64) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(key)
	if size <= c.half() {
		c.add(key, cacheItem[V]{value, size})
	}
}

// Drop forgets the value of a key.
func (c *Cache[K, V]) Drop(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(key)
}

func (c *Cache[K, V]) half() int64 { return cmp.Or(c.Half, 2000) }

func (c *Cache[K, V]) drop(key K) {
	c.size -= c.young[key].size
	delete(c.young, key)
	delete(c.old, key)
}

func (c *Cache[K, V]) add(key K, v cacheItem[V]) {
	if c.young == nil || c.size+v.size > c.half() {
		c.old, c.young, c.size = c.young, map[K]cacheItem[V]{}, 0
	}
	delete(c.old, key)
	c.young[key] = v
	c.size += v.size
}
