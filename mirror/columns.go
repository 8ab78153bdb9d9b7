package mirror

import (
	"encoding/binary"
	"errors"
	"strings"
	"time"
)

// Columns are lists of values of one kind, to be compressed afterwards: most follow from the one
// before, and a distance of 0 costs next to nothing. One description of the columns serves both
// to write and to read them.
type columns struct {
	text   []byte // what is written, or still to be read
	isRead bool
	err    error
}

// errColumns means the text was not written by columns.
var errColumns = errors.New("its columns do not fit")

func readColumns(text []byte) *columns {
	return &columns{text: text, isRead: true}
}

// count is the number of values of the next columns, which together take at least so many bytes
// each.
func (c *columns) count(n, least int) int {
	number := int64(n)
	c.number(&number)
	if c.isRead && (number < 0 || number > int64(len(c.text)/least)) {
		c.err = errColumns
		return 0
	}
	return int(number)
}

func (c *columns) number(n *int64) {
	if !c.isRead {
		c.text = binary.AppendVarint(c.text, *n)
		return
	}
	value, size := binary.Varint(c.text)
	if size <= 0 || c.err != nil {
		c.err, c.text = errColumns, nil
		return
	}
	*n, c.text = value, c.text[size:]
}

// words is a column of unrelated numbers.
func (c *columns) words(n int, at func(int) *uint64) {
	for i := range n {
		switch {
		case !c.isRead:
			c.text = binary.BigEndian.AppendUint64(c.text, *at(i))
		case c.err != nil || len(c.text) < 8:
			c.err, c.text = errColumns, nil
		default:
			*at(i), c.text = binary.BigEndian.Uint64(c.text), c.text[8:]
		}
	}
}

// numbers is a column of numbers.
func (c *columns) numbers(n int, at func(int) *int64) {
	last := int64(0)
	for i := range n {
		value := at(i)
		distance := *value - last
		c.number(&distance)
		if c.isRead {
			*value = last + distance
		}
		last = *value
	}
}

// times is a column of times; they are in UTC when they are read.
func (c *columns) times(n int, at func(int) *time.Time) {
	seconds, nanoseconds := make([]int64, n), make([]int64, n)
	if !c.isRead {
		for i := range n {
			seconds[i], nanoseconds[i] = at(i).Unix(), int64(at(i).Nanosecond())
		}
	}
	c.numbers(n, func(i int) *int64 { return &seconds[i] })
	c.numbers(n, func(i int) *int64 { return &nanoseconds[i] })
	if c.isRead {
		for i := range n {
			*at(i) = time.Unix(seconds[i], nanoseconds[i]).UTC()
		}
	}
}

// flags is a column of truth values.
func (c *columns) flags(n int, at func(int) *bool) {
	for i := range n {
		value := int64(0)
		if *at(i) {
			value = 1
		}
		if c.number(&value); c.isRead {
			*at(i) = value != 0
		}
	}
}

// texts is a column of texts.
func (c *columns) texts(n int, at func(int) *string) {
	c.likely(n, at, func(int) string { return "" })
}

// likely is a column of texts, usually those like returns.
func (c *columns) likely(n int, at func(int) *string, like func(int) string) {
	sizes := make([]int64, n) // -1 for what is likely
	for i := range n {
		if sizes[i] = int64(len(*at(i))); *at(i) == like(i) {
			sizes[i] = -1
		}
	}
	c.numbers(n, func(i int) *int64 { return &sizes[i] })
	for i := range n {
		switch {
		case !c.isRead:
			if sizes[i] >= 0 {
				c.text = append(c.text, *at(i)...)
			}
		case sizes[i] == -1:
			*at(i) = like(i)
		case c.err != nil || sizes[i] < 0 || sizes[i] > int64(len(c.text)):
			c.err, c.text = errColumns, nil
		default:
			*at(i), c.text = string(c.text[:sizes[i]]), c.text[sizes[i]:]
		}
	}
}

// lists is a column of lists of texts without line breaks, which usually have the one like returns.
func (c *columns) lists(n int, at func(int) *[]string, like func(int) string) {
	joined := make([]string, n)
	for i := range n {
		joined[i] = strings.Join(*at(i), "\n")
	}
	c.likely(n, func(i int) *string { return &joined[i] }, like)
	for i := range n {
		if c.isRead && joined[i] != "" {
			*at(i) = strings.Split(joined[i], "\n")
		}
	}
}
