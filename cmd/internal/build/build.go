// Package build says which build of a command is running.
package build

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/feedhistory/feedhistory"
)

// Version returns a command's name with the library's version, or its module's if it
// was installed by one; the revision, if the build knows it; and the Go version.
func Version(command string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	return command + " " + describe(info)
}

func describe(info *debug.BuildInfo) string {
	number := info.Main.Version
	if number == "" || number == "(devel)" {
		number = "v" + feedhistory.Version
	}
	settings := make(map[string]string)
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	details := cmp.Or(info.GoVersion, runtime.Version())
	if revision := settings["vcs.revision"]; revision != "" {
		revision = "revision " + revision[:min(12, len(revision))]
		if settings["vcs.modified"] == "true" {
			revision += ", modified"
		}
		details = revision + ", " + details
	}
	return fmt.Sprintf("%s (%s)", number[1:], details)
}
