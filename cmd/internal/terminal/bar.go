package terminal

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// A Bar shows on one line of a terminal how far a verb is. Its nil value shows nothing.
type Bar struct {
	Total   int           // Total is the number of steps; 0 if it is unknown.
	Waiting func() string // Waiting names the host the verb is waiting for, or returns ""; nil means there is none.

	w     io.Writer
	began time.Time
	stop  chan struct{}
	ended sync.WaitGroup

	mu    sync.Mutex
	text  string
	now   func() string // the text, if it is not text
	done  int
	shown bool
}

// redraw is the time between two drawings.
const redraw = 200 * time.Millisecond

// Start shows the bar on a terminal until End is called.
func (b *Bar) Start(w io.Writer, text string) {
	b.w, b.text, b.began, b.stop = w, text, time.Now(), make(chan struct{})
	b.draw()
	b.ended.Go(func() {
		tick := time.NewTicker(redraw)
		defer tick.Stop()
		for {
			select {
			case <-b.stop:
				return
			case <-tick.C:
				b.draw()
			}
		}
	})
}

// Describe changes the text.
func (b *Bar) Describe(text string) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = text
}

// Update makes the bar ask for its text each time it is drawn.
func (b *Bar) Update(text func() string) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = text
}

// Step counts a step.
func (b *Bar) Step() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.done++
}

// Clear removes the bar from its line until it is drawn again, to make room for a message.
func (b *Bar) Clear() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clear()
}

// End removes the bar.
func (b *Bar) End() {
	if b == nil {
		return
	}
	close(b.stop)
	b.ended.Wait()
	b.Clear()
}

func (b *Bar) clear() {
	if b.shown {
		fmt.Fprint(b.w, "\r\x1b[K")
		b.shown = false
	}
}

func (b *Bar) draw() {
	b.mu.Lock()
	defer b.mu.Unlock()
	width := Width(b.w)
	if width == 0 {
		width = Columns
	}
	fmt.Fprint(b.w, "\r\x1b[K"+b.line(width, time.Since(b.began)))
	b.shown = true
}

// line returns the bar for a terminal, without the last column: some terminals go to the
// next line after it.
func (b *Bar) line(width int, since time.Duration) string {
	const cells, wide = 10, 60
	text := b.text
	if b.now != nil {
		text = b.now()
	}
	if b.Waiting != nil {
		if host := b.Waiting(); host != "" {
			text = "waiting for " + host + " · " + text
		}
	}
	text += " · " + Span(since)
	if b.Total > 0 {
		part := min(b.done, b.Total) * cells / b.Total
		graph := ""
		if width >= wide {
			graph = strings.Repeat("█", part) + strings.Repeat("░", cells-part) + " "
		}
		text = fmt.Sprintf("%3d%% %s%s", min(b.done, b.Total)*100/b.Total, graph, text)
	} else {
		frames := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
		text = string(frames[int(since/redraw)%len(frames)]) + " " + text
	}
	return Cut(Clean(text), width-1)
}
