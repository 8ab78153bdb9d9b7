package check

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
)

// Digests remember the archives of feeds from one run to the next: the set of entries,
// which should not change (5005#9), with the ids, update times and content of each
// entry. They ignore the archive's own links, which may change. The zero value is
// empty.
type Digests struct {
	feeds   map[string]map[string]digest  // by the URLs of the feed and of the archive
	entries map[string]map[string]entries // by the URLs of the feed and of the archive
}

// The entries of an archive by id: the update time, and a digest of the words.
type entries map[string]string

// A digest remembers an archive.
type digest struct {
	Entries int    `json:"entries"`
	Digest  string `json:"digest"`

	// the links, only for a page of entities
	Prev string `json:"prev,omitempty"`
	Next string `json:"next,omitempty"`
}

// ReadDigests reads a file written by Write. If the file does not exist, the digests
// are empty.
func ReadDigests(file string) (*Digests, error) {
	d := new(Digests)
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return d, nil
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, d); err != nil {
		return nil, fmt.Errorf("%s: not a file of digests: %w", file, err)
	}
	return d, nil
}

// Write writes the digests to a file, either completely or not at all.
func (d *Digests) Write(file string) (err error) {
	data, err := json.Marshal(d)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, data, "", "  "); err != nil {
		return err
	}
	out.WriteByte('\n')
	tmp, err := os.CreateTemp(filepath.Dir(file), ".digests-*")
	if err != nil {
		return err
	}
	defer os.Remove(tmp.Name())
	_, err = tmp.Write(out.Bytes())
	if err = errors.Join(err, tmp.Chmod(0o644), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), file)
}

// A digestFile is the content of the file: an object, which can be extended.
type digestFile struct {
	Feeds   map[string]map[string]digest  `json:"feeds"`
	Entries map[string]map[string]entries `json:"entries,omitempty"`
}

// MarshalJSON writes the digests.
func (d *Digests) MarshalJSON() ([]byte, error) { return json.Marshal(digestFile{d.feeds, d.entries}) }

// UnmarshalJSON reads them.
func (d *Digests) UnmarshalJSON(data []byte) error {
	var f digestFile
	err := json.Unmarshal(data, &f)
	d.feeds, d.entries = f.Feeds, f.Entries
	return err
}

func digestOf(doc *feedhistory.Document) digest {
	var lines []string
	for _, e := range doc.Entries {
		lines = append(lines, e.ID+"\n"+e.Updated.UTC().Format(time.RFC3339Nano)+"\n")
	}
	slices.Sort(lines)
	sum := sha256.Sum256([]byte(strings.Join(lines, "")))
	return digest{Entries: len(doc.Entries), Digest: hex.EncodeToString(sum[:])}
}

// keep remembers an archive of a feed.
func (d *Digests) keep(feed, url string, now digest) {
	if d.feeds == nil {
		d.feeds = map[string]map[string]digest{}
	}
	if d.feeds[feed] == nil {
		d.feeds[feed] = map[string]digest{}
	}
	d.feeds[feed][url] = now
}

// missing reports the archives no longer in a feed's chain, and forgets them.
func (d *Digests) missing(feed string, seen map[string]bool) (out []Finding) {
	archives, at := d.feeds[feed], map[digest]string{}
	for url := range seen {
		at[archives[url]] = url
	}
	for url, old := range archives {
		if seen[url] {
			continue
		}
		if now, ok := at[old]; ok {
			out = append(out, newFinding("archive-moved", now, "at an earlier run this archive was "+clip(url)))
		} else {
			out = append(out, newFinding("archive-gone", url, "the chain no longer has this archive of an earlier run"))
		}
		delete(archives, url)
		delete(d.entries[feed], url)
	}
	slices.SortFunc(out, func(a, b Finding) int { return strings.Compare(a.Message+a.URL, b.Message+b.URL) })
	return out
}
