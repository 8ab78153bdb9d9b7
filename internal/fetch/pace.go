package fetch

import (
	"context"
	"net/url"
	"time"
)

// enter waits for a request's turn at its host. What it returns must be given
// to exit.
func (c *Client) enter(ctx context.Context, u *url.URL) (*host, error) {
	h := c.shared().hosts.use(hostName(u), c.perHost(), c.Pace)
	if err := c.barred(h, u, c.Retry.maxWait()); err != nil {
		c.shared().hosts.leave(h)
		return nil, err
	}
	select {
	case h.slots <- struct{}{}:
	case <-ctx.Done():
		c.shared().hosts.leave(h)
		return nil, wrap(u.String(), ctx.Err())
	}
	if err := c.await(ctx, h, u); err != nil {
		c.exit(h)
		return nil, err
	}
	return h, nil
}

func (c *Client) exit(h *host) {
	<-h.slots
	c.shared().hosts.leave(h)
}

// barred fails if the host wants to be left alone for longer than we wait.
func (c *Client) barred(h *host, u *url.URL, longest time.Duration) error {
	until, status := c.shared().hosts.asked(h)
	wait := time.Until(until)
	if wait <= longest {
		return nil
	}
	return &StatusError{URL: u.String(), Status: status, Remembered: true, At: until, RetryAfter: wait}
}

// await waits until the host may be asked: after what it asked for itself,
// and at our own pace. While one waits, another request may be told to stay
// away, so it looks again; what it waits for the host is limited in all.
func (c *Client) await(ctx context.Context, h *host, u *url.URL) error {
	left := c.Retry.maxWait()
	for paced := h.pace.Load() == nil; ; paced = true {
		until, _ := c.shared().hosts.asked(h)
		alone := time.Until(until)
		if alone <= 0 && paced {
			return nil
		}
		if err := c.barred(h, u, left); err != nil {
			return err
		}
		left -= max(alone, 0)
		c.logWait(ctx, u, alone)
		if sleep(ctx, alone) != nil || c.step(ctx, h) != nil {
			return wrap(u.String(), ctx.Err())
		}
	}
}

// step waits for the pace to allow one more start.
func (c *Client) step(ctx context.Context, h *host) error {
	pace := h.pace.Load()
	if pace == nil {
		return ctx.Err()
	}
	r := pace.Reserve()
	err := sleep(ctx, r.Delay())
	if err != nil {
		r.Cancel()
	}
	return err
}
