package web

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/opml"
	"github.com/feedhistory/feedhistory/mirror"
)

// A new feed is polled at once. If the poll shows within a moment that there is no
// feed, the error is shown next to the field, and the feed is not kept.
const (
	trialTime = 3 * time.Second
	trialStep = 10 * time.Millisecond
)

const needsLogin = "This feed needs a login, so it cannot be added here. Add it with feedhistory sync, and start the server with --private."

// addTried adds a feed, and waits a moment for its first poll. If nobody has
// typed http or https, and https fails, it tries http. It returns the added
// address, or the reason why there is none. Whoever insists is not asked.
func (a *adder) addTried(ctx context.Context, typed, address string, insists bool) (added, wrong string, err error) {
	until := time.Now().Add(trialTime)
	if wrong, err = a.addOne(ctx, address, insists, until); err != nil || wrong == "" {
		return address, wrong, err
	}
	if plain, ok := strings.CutPrefix(address, "https:"); ok && !strings.Contains(typed, "://") {
		other, err := a.addOne(ctx, "http:"+plain, insists, until.Add(trialTime))
		if err != nil || other == "" {
			return "http:" + plain, "", err
		}
	}
	return address, wrong, nil
}

func (a *adder) addOne(ctx context.Context, address string, insists bool, until time.Time) (wrong string, err error) {
	isNew, err := a.add(ctx, address, opml.Outline{})
	if err != nil {
		return "", err
	}
	if !isNew {
		// A feed hidden from this server gets the same answer as one behind a login and not
		// here.
		if _, err := a.store.Feed(ctx, address); errors.Is(err, mirror.ErrNotFound) {
			return needsLogin, nil
		}
		return "", nil
	}
	if insists {
		return "", nil
	}
	return a.try(ctx, address, until)
}

// try waits for the first poll of a feed, and forgets the feed if the poll shows there
// is none.
func (a *adder) try(ctx context.Context, address string, until time.Time) (wrong string, err error) {
	for time.Now().Before(until) {
		feed, err := a.store.Feed(ctx, address)
		if errors.Is(err, mirror.ErrNotFound) || err == nil && feed.Head != "" {
			return "", nil // another feed has replaced it, or it has been read
		}
		if err != nil {
			return "", err
		}
		waits, runs := a.polls.Status(address)
		if failure, ok := a.failures.Get(address); ok && !waits && !runs {
			if links, _ := a.found.Get(address); len(links) > 0 {
				return "", nil // a person chooses one of them
			}
			return explain(failure), a.discard(ctx, address)
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(trialStep):
		}
	}
	return "", nil
}

// discard removes a feed never read.
func (a *adder) discard(ctx context.Context, address string) error {
	a.polls.Forget(address)
	if err := a.store.Remove(ctx, address); err != nil && !errors.Is(err, mirror.ErrNotFound) {
		return err
	}
	a.feeds.forget(address)
	a.replaced(address)
	return nil
}

// explain explains to people why an address is not a feed's.
func explain(err error) string {
	status, answered := errors.AsType[*feedhistory.StatusError](err)
	_, refused := errors.AsType[*feedhistory.RefusedError](err)
	_, parsed := errors.AsType[*feedhistory.ParseError](err)
	switch {
	case answered && (status.Status == http.StatusUnauthorized || status.Status == http.StatusForbidden):
		return needsLogin
	case answered && (status.Status == http.StatusNotFound || status.Status == http.StatusGone):
		return "There is nothing at this address: the answer was " + strconv.Itoa(status.Status) + ". Look for a typing error."
	case refused:
		return "This server may not read that address: " + err.Error() + "."
	case parsed:
		return "There is no feed at this address, nor a page naming one. Look for a link to the feed on the website."
	}
	return "The address cannot be read now: " + err.Error() + "."
}
