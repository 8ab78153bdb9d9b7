package fetch

import (
	"context"
	"net/url"
	"time"
)

// enter waits for a request's turn at its host. Its result must be passed to exit.
func (c *Client) enter(ctx context.Context, u *url.URL) (*host, error) {
	h := c.shared().hosts.use(hostName(u), c.perHost(), c.Pace)
	if err := c.barred(h, u, c.maxWait()); err != nil {
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

// IsPatient reports whether a host has neither asked clients to wait nor a pace.
func (c *Client) IsPatient(address string) bool {
	hs := &c.shared().hosts
	hs.mu.Lock()
	defer hs.mu.Unlock()
	h := hs.byName[HostOf(address)]
	return h == nil || h.status == 0 && h.pace.Load() == nil
}

// Wait returns until when a host asks clients to wait; the zero time if it does not.
func (c *Client) Wait(address string) time.Time {
	hs := &c.shared().hosts
	hs.mu.Lock()
	defer hs.mu.Unlock()
	if h := hs.byName[HostOf(address)]; h != nil && h.until.After(time.Now()) {
		return h.until
	}
	return time.Time{}
}

// barred returns an error if the host asks for a longer wait than allowed.
func (c *Client) barred(h *host, u *url.URL, longest time.Duration) error {
	until, status := c.shared().hosts.asked(h)
	wait := time.Until(until)
	if wait <= longest {
		return nil
	}
	return &Failure{Kind: Status, URL: u.String(), Status: status, Remembered: true, At: until, RetryAfter: wait}
}

// await waits until the host may be asked: after the time it asked for, and at our own
// pace. Meanwhile another answer may ask for a longer wait, so await checks again; its
// total wait for the host is limited.
func (c *Client) await(ctx context.Context, h *host, u *url.URL) error {
	left := c.maxWait()
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

// step waits until the pace allows one more start.
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
