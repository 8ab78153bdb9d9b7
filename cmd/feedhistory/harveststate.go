package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/feedhistory/feedhistory/harvest/modifiedrange"
	"github.com/feedhistory/feedhistory/publish"
)

// A harvestState is what the file of --state has: where the next harvest of a
// collection begins.
type harvestState struct {
	URL      string `json:"url"`
	Protocol string `json:"protocol"`
	modifiedrange.State
}

// readState returns where to begin: nowhere, if there is no file yet. The state
// of one collection means nothing to another.
func (c *harvestCommand) readState() (modifiedrange.State, error) {
	var state harvestState
	if c.State == "" {
		return state.State, nil
	}
	data, err := os.ReadFile(c.State)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return state.State, nil
	case err != nil:
		return state.State, fmt.Errorf("--state: %w", err)
	}
	if err := json.Unmarshal(data, &state); err != nil || state.URL == "" {
		return state.State, usageError("--state: " + c.State + " is not the state of a harvest")
	}
	if state.URL != c.URL || state.Protocol != c.Protocol {
		return state.State, usageError("--state: " + c.State + " is the state of another harvest: " +
			state.Protocol + ", " + withoutUser(state.URL))
	}
	return state.State, nil
}

// writeState notes where the next harvest begins, in one step: a crash leaves
// the old state or the new one.
func (c *harvestCommand) writeState(next modifiedrange.State) error {
	data, err := json.Marshal(harvestState{c.URL, c.Protocol, next})
	if err == nil {
		dir, name := filepath.Split(c.State)
		err = publish.Dir{Path: dir}.Put(name, append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("--state: %w", err)
	}
	return nil
}
