package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/feedhistory/feedhistory/cmd/internal/show"
	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/mirror"
)

// Feed returns the feed people mean by an argument: the one with this address, with or
// without its scheme, else with this title, else the only one with the text in its
// address or title. With exact, the text must be the whole address or title.
func (d *Location) Feed(ctx context.Context, store mirror.Store, arg string, exact bool) (*mirror.Feed, error) {
	f, err := store.Feed(ctx, terminal.FeedName(arg))
	if !errors.Is(err, mirror.ErrNotFound) {
		return f, d.Failure(err)
	}
	var fitting [numFits][]*mirror.Feed
	want := newFeedText(arg)
	for f, err := range store.Feeds(ctx, mirror.FeedQuery{}) {
		if err != nil {
			return nil, d.Failure(err)
		}
		fit := want.fit(f)
		fitting[fit] = append(fitting[fit], f)
	}
	for fit, feeds := range fitting[:noFit] {
		if current := slices.DeleteFunc(slices.Clone(feeds), func(f *mirror.Feed) bool { return f.Alias != "" }); len(current) > 0 {
			feeds = current
		}
		partial := exact && fit == int(partOfFeed)
		switch {
		case len(feeds) == 1 && !partial:
			return feeds[0], nil
		case len(feeds) > 0:
			return nil, choice(arg, feeds, partial)
		}
	}
	return nil, d.Unknown(arg, mirror.ErrNotFound)
}

// Feeds returns the feeds people mean by arguments, each once.
func (d *Location) Feeds(ctx context.Context, store mirror.Store, args []string) (feeds []*mirror.Feed, err error) {
	for _, arg := range args {
		f, err := d.Feed(ctx, store, arg, false)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(feeds, func(other *mirror.Feed) bool { return other.URL == f.URL }) {
			feeds = append(feeds, f)
		}
	}
	return feeds, nil
}

// FeedsOrAll yields the feeds people mean by arguments, or all feeds if there are none.
func (d *Location) FeedsOrAll(ctx context.Context, store mirror.Store, args []string) (iter.Seq2[*mirror.Feed, error], error) {
	if len(args) == 0 {
		return store.Feeds(ctx, mirror.FeedQuery{}), nil
	}
	feeds, err := d.Feeds(ctx, store, args)
	return func(yield func(*mirror.Feed, error) bool) {
		for _, f := range feeds {
			if !yield(f, nil) {
				return
			}
		}
	}, err
}

// AddressesOf returns the address of the feed with a name, which must be whole with exact, or
// those of all feeds without a name.
func (d *Location) AddressesOf(ctx context.Context, store mirror.Store, name string, exact bool) (urls []string, err error) {
	if name != "" {
		f, err := d.Feed(ctx, store, name, exact)
		if err != nil {
			return nil, err
		}
		return []string{f.URL}, nil
	}
	for f, err := range store.Feeds(ctx, mirror.FeedQuery{}) {
		if err != nil {
			return nil, err
		}
		urls = append(urls, f.URL)
	}
	return urls, nil
}

// URLs returns the addresses of feeds.
func URLs(feeds []*mirror.Feed) (urls []string) {
	for _, f := range feeds {
		urls = append(urls, f.URL)
	}
	return urls
}

// choice returns the error of an argument that fits several feeds, or a part of one where
// only a whole name counts.
func choice(arg string, feeds []*mirror.Feed, partial bool) error {
	text := fmt.Sprintf("several feeds fit %q; give more of the address or title:", terminal.WithoutUser(arg))
	if partial {
		text = fmt.Sprintf("%q is a part only; give the whole address or title:", terminal.WithoutUser(arg))
	}
	err := &terminal.ChoiceError{Text: text}
	for _, f := range feeds {
		err.Choices = append(err.Choices, strings.TrimSpace(show.Address(f.URL)+"  "+cmp.Or(f.Named, f.Title)))
	}
	return err
}

// A feedFit is how an argument fits a feed, the best first.
type feedFit int

const (
	addressOfFeed feedFit = iota
	titleOfFeed
	partOfFeed
	noFit
	numFits
)

// A feedText is an argument in the forms in which it is compared.
type feedText struct {
	address, title string
	isURL          bool // whether it has a scheme, so that it is no part of a word
}

func newFeedText(arg string) feedText {
	return feedText{bare(terminal.FeedName(arg)), strings.ToLower(terminal.Clean(arg)), terminal.IsURL(arg)}
}

func (t feedText) fit(f *mirror.Feed) feedFit {
	address, current := bare(f.URL), bare(f.Address)
	named, title := strings.ToLower(terminal.Clean(f.Named)), strings.ToLower(terminal.Clean(f.Title))
	switch {
	case t.address == address, t.address == current:
		return addressOfFeed
	case t.title == named, t.title == title:
		return titleOfFeed
	case t.isURL && !strings.HasPrefix(address, t.address+"/"), t.address == "":
		return noFit
	case strings.Contains(address, t.address), strings.Contains(current, t.address), strings.Contains(named, t.title), strings.Contains(title, t.title):
		return partOfFeed
	}
	return noFit
}

// bare returns an address as people write it, in lower case: without its scheme, www and a
// slash at the end.
func bare(address string) string {
	_, rest, ok := strings.Cut(address, "://")
	if !ok {
		rest = address
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.ToLower(rest), "www."), "/")
}
