package republish

import (
	"cmp"
	"sync"
)

// A cache keeps the values put last, and some of the earlier ones. The zero
// value is ready to use.
type cache[K comparable, V any] struct {
	half   int // minimum number of values to keep; zero means 2,000
	mu     sync.Mutex
	recent map[K]V
	older  map[K]V
}

func (c *cache[K, V]) get(key K) (V, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v, ok := c.recent[key]; ok {
		return v, true
	}
	v, ok := c.older[key]
	if ok {
		c.set(key, v)
	}
	return v, ok
}

func (c *cache[K, V]) put(key K, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set(key, v)
}

func (c *cache[K, V]) drop(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.recent, key)
	delete(c.older, key)
}

func (c *cache[K, V]) set(key K, v V) {
	if len(c.recent) >= cmp.Or(c.half, 2000) || c.recent == nil {
		c.older, c.recent = c.recent, map[K]V{}
	}
	c.recent[key] = v
}
