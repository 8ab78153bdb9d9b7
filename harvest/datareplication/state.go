package datareplication

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/feedhistory/feedhistory/publish"
)

// The files of an Output. The state, which is one file and so is replaced in one step,
// decides everything: a file it does not name does not count. So the order of writes
// does not matter, and a crash at any point leaves the feed as it was before the call
// or as it is after it (datareplication#producer-1).
//
//	feed.json                      the state, with the newest page
//	pages/7.json                   an inner page
//	pages/7.entities               its entities, as they are sent
//	pages/8.0-512                  entities of the newest page: bytes from, to
//	snapshots/3F2A….1.json         a page of a snapshot
//	snapshots/3F2A….1.entities
const (
	stateName    = "feed.json"
	pagesDir     = "pages"
	snapshotsDir = "snapshots"
)

// A state is the content of a feed.
type state struct {
	Time      time.Time   `json:"time"`           // no later stamp is before this time
	Last      string      `json:"last,omitempty"` // the ContentID of the newest entity
	Oldest    int         `json:"oldest"`         // the number of the oldest page
	Newest    *sheet      `json:"newest,omitempty"`
	Turn      bool        `json:"turn,omitempty"`      // whether the next entity begins another page
	Snapshots []*snapshot `json:"snapshots,omitempty"` // newest last
	Making    string      `json:"making,omitempty"`    // the ID of the snapshot under way
}

// A sheet is a stored page.
type sheet struct {
	Number   int       `json:"number"`
	Boundary string    `json:"boundary"`
	Modified time.Time `json:"modified"` // the stamp of the last entity
	Parts    []piece   `json:"parts"`    // the files with the entities, in order
}

// A piece is a file with some of a page's entities.
type piece struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

// A snapshot is a complete snapshot.
type snapshot struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created"`
	Pages   int       `json:"pages"`
}

// bytes returns the length of the entities as they are sent.
func (s *sheet) bytes() (n int64) {
	for _, p := range s.Parts {
		n += p.Size
	}
	return n
}

// pageStem returns the beginning of the names of a page's files.
func pageStem(number int) string { return fmt.Sprintf("%s/%d", pagesDir, number) }
func snapshotStem(id string, number int) string {
	return fmt.Sprintf("%s/%s.%d", snapshotsDir, id, number)
}
func sheetName(stem string) string                 { return stem + ".json" }
func entitiesName(stem string) string              { return stem + ".entities" }
func pieceName(stem string, from, to int64) string { return fmt.Sprintf("%s.%d-%d", stem, from, to) }

// loadState reads the state; if there is none, the feed is empty.
func loadState(out fs.FS) (*state, error) {
	s := &state{Oldest: 1}
	err := load(out, stateName, s)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	return s, err
}

// loadSheet reads a stored page other than the newest.
func loadSheet(out fs.FS, stem string) (*sheet, error) {
	s := new(sheet)
	return s, load(out, sheetName(stem), s)
}

// page returns a page of the feed. If there is no such page, the error matches
// fs.ErrNotExist.
func (s *state) page(out fs.FS, number int) (*sheet, error) {
	switch {
	case s.Newest == nil || number < s.Oldest || number > s.Newest.Number:
		return nil, fs.ErrNotExist
	case number == s.Newest.Number:
		return s.Newest, nil
	}
	return loadSheet(out, pageStem(number))
}

func load(out fs.FS, name string, into any) error {
	data, err := fs.ReadFile(out, name)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func store(ctx context.Context, out publish.Output, name string, what any) error {
	data, err := json.Marshal(what)
	if err != nil {
		return err
	}
	return out.Put(ctx, name, append(data, '\n'))
}
