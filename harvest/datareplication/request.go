package datareplication

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/replication"
)

// open requests a page of the feed by another page's link.
func (r *run) open(method, url, from string) (*replication.Page, error) {
	if err := r.spend(1); err != nil {
		return nil, err
	}
	page, err := r.request(r.ctx, method, url)
	if err != nil && url != r.c.URL {
		err = &PageError{URL: url, From: from, Err: err, Clause: clausePages}
	}
	return page, err
}

// request requests a page if its origin is allowed.
func (r *run) request(ctx context.Context, method, url string) (*replication.Page, error) {
	if err := r.foreign(url); err != nil {
		return nil, err
	}
	page, err := replication.Open(ctx, r.fetcher, method, url)
	if err != nil {
		return nil, err
	}
	if err := r.foreign(page.URL); err != nil { // after a redirect
		return nil, errors.Join(err, page.Close())
	}
	return page, nil
}

// foreign refuses a URL outside of the feed's origin, if the client's policy demands
// it.
func (r *run) foreign(address string) error {
	if r.c.HTTP == nil || !r.c.HTTP.Policy.SameOrigin {
		return nil
	}
	if iri.AreSameOrigin(r.c.URL, address) {
		return nil
	}
	return &feedhistory.RefusedError{URL: address, Rule: feedhistory.RuleOrigin}
}

const limitRequests = "requests"

// spend counts requests before they are made.
func (r *run) spend(n int) error {
	if n > r.limits.Requests-r.requests {
		return &BudgetError{URL: r.c.URL, Limit: limitRequests, Max: int64(r.limits.Requests), Clause: clauseBounded}
	}
	r.requests += n
	return nil
}

func (r *run) head(url, from string) (*replication.Page, error) {
	page, err := r.open(http.MethodHead, url, from)
	if err != nil {
		return nil, err
	}
	return page, page.Close()
}

// gone reports whether an error is about a missing page.
func gone(err error) bool {
	return feedhistory.IsStatus(err, http.StatusNotFound, http.StatusGone)
}

// interrupted returns the error for a page not read to its end; nil if it was, but is
// malformed.
func (r *run) interrupted(page *replication.Page, whole int, err error) error {
	truncated, cut := errors.AsType[*feedhistory.TruncatedError](err)
	_, timeout := errors.AsType[*feedhistory.TimeoutError](err)
	_, limit := errors.AsType[*feedhistory.LimitError](err)
	switch {
	case r.ctx.Err() != nil:
		return r.ctx.Err()
	case errors.Is(err, replication.ErrTooLarge):
		return &BudgetError{URL: page.URL, Limit: "entity", Max: r.limits.Entity, Clause: clauseBounded}
	case cut:
		return &CutShortError{URL: page.URL, Whole: whole, Err: truncated.Err, Clause: clauseTorn}
	case err == io.EOF || err == io.ErrUnexpectedEOF || timeout:
		return &CutShortError{URL: page.URL, Whole: whole, Err: err, Clause: clauseTorn}
	case limit:
		return err
	}
	return nil
}
