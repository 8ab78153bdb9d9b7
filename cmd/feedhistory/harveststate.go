package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/feedhistory/feedhistory/publish"
)

// A harvested collection is the beginning of the file of --state, because the state of
// one collection means nothing for another. The state of each protocol embeds it.
type harvested struct {
	URL      string `json:"url"`
	Protocol string `json:"protocol"`
}

func (c *harvestCommand) harvested() harvested { return harvested{c.URL, c.Protocol} }

// readState reads where to begin. It does not change state if there is no file yet.
func (c *harvestCommand) readState(state any) error {
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
	var of harvested
	if err := json.Unmarshal(data, &of); err != nil || of.URL == "" {
		return usageError("--state: " + c.State + " is not the state of a harvest")
	}
	if of != c.harvested() {
		return usageError("--state: " + c.State + " is the state of another harvest: " + of.Protocol + ", " + withoutUser(of.URL))
	}
	if err := json.Unmarshal(data, state); err != nil {
		return usageError("--state: " + c.State + ": " + err.Error())
	}
	return nil
}

// writeState records where the next harvest begins. It is atomic: a crash leaves the
// old state or the new one.
func (c *harvestCommand) writeState(state any) error {
	if c.State == "" {
		return nil
	}
	data, err := json.Marshal(state)
	if err == nil {
		dir, name := filepath.Split(c.State)
		err = publish.Dir{Path: dir}.Put(name, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	return nil
}
