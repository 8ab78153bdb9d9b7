package database

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// Tagger is the program to write tags.
const Tagger = "ffmpeg"

// Tags are those of an audio file; "" leaves one as it is.
type Tags struct{ Title, Album, Artist, Date string }

// taggable are the files whose tags can be written, with the names of their formats in ffmpeg:
// for reading and for writing. Only these are read, so no file names others.
var taggable = map[string][2]string{
	".mp3": {"mp3", "mp3"}, ".m4a": {"mov", "ipod"}, ".m4b": {"mov", "ipod"}, ".flac": {"flac", "flac"},
	".ogg": {"ogg", "ogg"}, ".oga": {"ogg", "ogg"}, ".opus": {"ogg", "opus"},
}

// tag writes the tags of a file into its temporary file, which stays as it is after an error.
func (d *Downloader) tag(ctx context.Context, part string, f File) error {
	form, ok := taggable[strings.ToLower(path.Ext(f.Name))]
	if !ok || f.Tags == (Tags{}) {
		return nil
	}
	made := part + ".tagged"
	args := []string{
		"-nostdin", "-v", "error", "-y", "-protocol_whitelist", "file", "-f", form[0], "-i", "file:" + filepath.Join(d.Root.Name(), part),
		"-map", "0:a", "-map", "0:v?", "-c", "copy",
	}
	to := "-metadata"
	if form[0] == "ogg" { // whose streams have the tags
		to = "-metadata:s:a"
	}
	for _, tag := range [][2]string{{"title", f.Tags.Title}, {"album", f.Tags.Album}, {"artist", f.Tags.Artist}, {"date", f.Tags.Date}} {
		if tag[1] != "" {
			args = append(args, to, tag[0]+"="+tag[1])
		}
	}
	said, err := exec.CommandContext(ctx, Tagger, append(args, "-f", form[1], "file:"+filepath.Join(d.Root.Name(), made))...).CombinedOutput()
	if err == nil {
		return d.Root.Rename(made, part)
	}
	_ = d.Root.Remove(made)
	return fmt.Errorf("its tags could not be written: %w", cmp.Or(ctx.Err(), errors.New(terminal.Cut(terminal.Clean(cmp.Or(string(said), err.Error())), 200))))
}
