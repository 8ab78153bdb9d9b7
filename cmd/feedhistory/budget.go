package main

import (
	"errors"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/argument"
)

// budgetFlags are the flags that limit the requests and the bytes for one feed.
type budgetFlags struct {
	MaxDocuments int           `default:"10000" placeholder:"N" help:"Request at most N documents of a feed (default: ${default})."`
	MaxBytes     argument.Size `default:"1GiB" placeholder:"SIZE" help:"Read at most this much of a feed, such as 10MB (default: ${default})."`
}

// check refuses a budget of zero documents or bytes.
func (f *budgetFlags) check() error {
	switch {
	case f.MaxDocuments < 1:
		return errors.New("--max-documents: at least 1")
	case f.MaxBytes < 1:
		return errors.New("--max-bytes: at least 1")
	}
	return nil
}

func (f *budgetFlags) budget() feedhistory.Budget {
	return feedhistory.Budget{Documents: f.MaxDocuments, Bytes: int64(f.MaxBytes)}
}
