package collection

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/feedhistory/feedhistory/cmd/internal/argument"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
	"github.com/feedhistory/feedhistory/publish"
)

// collectionKey names the collection of a state, because a state means nothing for
// another collection. The state of each protocol embeds it.
type collectionKey struct {
	URL      string `json:"url"`
	Protocol string `json:"protocol"`
}

func (c *Source) key() collectionKey { return collectionKey{c.URL, c.Protocol} }

// readState reads the state from which to begin. If there is no file yet, it leaves state
// unchanged.
func (c *Source) readState(state any) error {
	if c.State == "" {
		return nil
	}
	data, err := os.ReadFile(c.State)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("--state: %w", err)
	}
	var of collectionKey
	if err := json.Unmarshal(data, &of); err != nil || of.URL == "" {
		return exit.UsageError("--state: " + c.State + " is not the state of a harvest")
	}
	if of != c.key() {
		return exit.UsageError("--state: " + c.State + " is the state of another harvest: " + of.Protocol + ", " + argument.WithoutUser(of.URL))
	}
	if err := json.Unmarshal(data, state); err != nil {
		return exit.UsageError("--state: " + c.State + ": " + err.Error())
	}
	return nil
}

// writeState records the state from which the next harvest begins. It is atomic: after a
// crash, the file has the old state or the new one.
func (c *Source) writeState(state any) error {
	if c.State == "" {
		return nil
	}
	data, err := json.Marshal(state)
	if err == nil {
		dir, name := filepath.Split(c.State)
		err = publish.Dir{Path: dir}.Put(context.Background(), name, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	return nil
}
