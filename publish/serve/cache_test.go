package serve

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCache(t *testing.T) {
	c := Cache[string, int]{Half: 4}
	for i := range 100 {
		c.Put(fmt.Sprint(i), i)
		_, used := c.Get("0")
		assert.True(t, used, "what is used stays")
		assert.LessOrEqual(t, len(c.young)+len(c.old), 8)
		assert.LessOrEqual(t, c.size, c.Half)
	}
	_, ok := c.Get("50")
	assert.False(t, ok)
	c.PutSized("large", 1, 5)
	_, ok = c.Get("large")
	assert.False(t, ok)
	c.Put("99", 7)
	v, _ := c.Get("99")
	assert.Equal(t, 7, v)
	c.Drop("99")
	_, ok = c.Get("99")
	assert.False(t, ok)
	var usual Cache[int, int]
	for i := range 2000 {
		usual.Put(i, i)
	}
	for i := range 2000 {
		_, ok := usual.Get(i)
		assert.True(t, ok)
	}
}

func TestWeights(t *testing.T) {
	for header, want := range map[string]bool{
		"": false, "gzip": true, "GZIP": true, "x-gzip": true, "*": true, "br": false,
		"gzip;q=0": false, "gzip; q=0.0": false, "*;q=0": false, "gzip;q=0, *": false,
		"identity;q=0.9, gzip;q=0.8": false, "identity;q=0.5, gzip ; Q=0.5": true,
		"gzip;q=x": false, "gzip;q=2": false, "gzip;q=-1": false, "gzip;q=NaN": false,
		",, ;q=1, gzip": true, "gzip;a=b;q=0": false, "identity": false, "identity, *;q=0.5": false,
	} {
		h := http.Header{}
		if header != "" {
			h.Set("Accept-Encoding", header)
		}
		assert.Equal(t, want, acceptsGzip(h), header)
	}
	for header, want := range map[string]int{
		"": 0, "*/*": 0, "application/rss+xml": 1, "application/rss+xml, */*;q=0.1": 1,
		"application/atom+xml;q=0.8, application/rss+xml;q=0.9": 1, "application/*": 0, "text/html": 0,
		"application/*;q=0.9, application/atom+xml;q=0.2": 1, "application/rss+xml;q=0": 0,
		"application/atom+xml;q=0, */*": 1,
	} {
		assert.Equal(t, want, Preferred(http.Header{"Accept": {header}}, "application/atom+xml", "application/rss+xml"), header)
	}
}
