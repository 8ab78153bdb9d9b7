package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/BurntSushi/toml"
	"github.com/alecthomas/kong"
)

const settingsHelp = "Settings in TOML. The name of a flag and its value, such as allow-private = true, hold for all verbs that have the flag; " +
	"in a table with the name of a verb, they hold for that verb. The variable FEEDHISTORY_CONFIG can name another file. " +
	"An environment variable can also set a flag, such as FEEDHISTORY_ALLOW_PRIVATE=true. " +
	"Only the command line can set --header, --user, --token-env and publish --db. " +
	"The command line has precedence over the environment, and the environment over the file."

// A configuration has the values of flags in the file of settings. Resolve also reads the
// environment.
type configuration struct {
	file    string
	all     map[string]any
	origins map[string]string // by flag: the environment variable or the file it comes from

	exclusive map[string][][]string          // by verb: the incompatible flags and arguments
	formats   map[string]map[string][]string // by verb and flag: the formats with which the flag has an effect
}

// notSettings are the flags only the command line may set. Credentials are for one
// address, so no setting may send them to every address.
var notSettings = []string{"header", "user", "token-env", "help", "version"}

// isSetting reports whether a setting may give a flag its value. A tag forbids it where
// the flag of another verb with the same name has another meaning.
func isSetting(f *kong.Flag) bool {
	return !slices.Contains(notSettings, f.Name) && !f.Tag.Has("commandline")
}

// configFile returns the name of the user's file of settings; "" if the system has no
// directory for it.
func configFile() string {
	if file, ok := os.LookupEnv("FEEDHISTORY_CONFIG"); ok {
		return file
	}
	dir := os.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		var err error
		if runtime.GOOS == "darwin" || runtime.GOOS == "windows" {
			dir, err = os.UserConfigDir()
		} else if dir, err = os.UserHomeDir(); err == nil {
			dir = filepath.Join(dir, ".config")
		}
		if err != nil {
			return ""
		}
	}
	return filepath.Join(dir, "feedhistory", "config.toml")
}

// settingsPlace says in the help where settings are.
func settingsPlace() string {
	file := configFile()
	if file == "" {
		return ""
	}
	return "\n\nSettings: flags for every run, such as allow-private = true, can be in " + file + " (TOML; a table [VERB] for one verb), or in variables such as FEEDHISTORY_ALLOW_PRIVATE."
}

// readSettings reads the settings. A missing or unreadable default file has none; a file named
// by FEEDHISTORY_CONFIG must exist.
func readSettings(exclusive map[string][][]string, formats map[string]map[string][]string) (*configuration, error) {
	c := &configuration{file: configFile(), origins: map[string]string{}, exclusive: exclusive, formats: formats}
	if c.file == "" {
		return c, nil
	}
	_, named := os.LookupEnv("FEEDHISTORY_CONFIG")
	_, err := toml.DecodeFile(c.file, &c.all)
	switch parse, ok := errors.AsType[toml.ParseError](err); {
	case !named && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission)): // such as for another user
		return c, nil
	case ok:
		return nil, fmt.Errorf("%s:%d: %s", c.file, parse.Position.Line, parse.Message)
	}
	return c, err
}

// Validate implements kong.Resolver. It refuses names of no flag or verb, and flags only
// the command line may set.
func (c *configuration) Validate(app *kong.Application) error {
	verbs := map[string][]*kong.Flag{}
	var every []*kong.Flag
	for _, v := range completedVerbs(app.Node) {
		verbs[v.Name] = v.Flags
		every = append(every, v.Flags...)
	}
	for key, value := range c.all {
		table, isTable := value.(map[string]any)
		flags, isVerb := verbs[key]
		if !isTable {
			if err := c.check(key, every); err != nil {
				return err
			}
			continue
		}
		if !isVerb {
			return fmt.Errorf("%s: there is no verb %s", c.file, key)
		}
		for key := range table {
			if err := c.check(key, flags); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *configuration) check(key string, flags []*kong.Flag) error {
	named := slices.DeleteFunc(slices.Clone(flags), func(f *kong.Flag) bool { return f.Name != key })
	switch {
	case len(named) == 0:
		return fmt.Errorf("%s: there is no flag %s", c.file, key)
	case !slices.ContainsFunc(named, isSetting):
		return fmt.Errorf("%s: %s is for the command line only", c.file, key)
	}
	return nil
}

// yields reports whether the command line contradicts a setting of the flag, which then
// has no effect.
func (c *configuration) yields(call *kong.Context, verb string, flag *kong.Flag) bool {
	return slices.ContainsFunc(call.Path, func(p *kong.Path) bool {
		name := ""
		switch {
		case p.Positional != nil:
			name = "<" + p.Positional.Name + ">"
		case p.Flag != nil && p.Flag.Name == "format" && c.formats[verb][flag.Name] != nil:
			return !slices.Contains(c.formats[verb][flag.Name], call.FlagValue(p.Flag).(string))
		case p.Flag != nil:
			name = p.Flag.Name
		}
		return slices.ContainsFunc(c.exclusive[verb], func(group []string) bool {
			return slices.Contains(group, flag.Name) && slices.Contains(group, name)
		})
	})
}

// Resolve implements kong.Resolver.
func (c *configuration) Resolve(call *kong.Context, parent *kong.Path, flag *kong.Flag) (any, error) {
	if !isSetting(flag) || c.yields(call, parent.Node().Name, flag) {
		return nil, nil
	}
	name := "FEEDHISTORY_" + strings.ToUpper(strings.ReplaceAll(flag.Name, "-", "_"))
	if value, ok := os.LookupEnv(name); ok {
		c.origins[flag.Name] = name
		return value, nil
	}
	for node := parent.Node(); node != nil; node = node.Parent {
		if table, ok := c.all[node.Name].(map[string]any); ok && node.Type == kong.CommandNode {
			if value, ok := table[flag.Name]; ok {
				c.origins[flag.Name] = c.file
				return settingText(value), nil
			}
		}
	}
	if value, ok := c.all[flag.Name]; ok {
		if _, isTable := value.(map[string]any); !isTable {
			c.origins[flag.Name] = c.file
			return settingText(value), nil
		}
	}
	return nil, nil
}

// SetBy returns the environment variable or the file that has set a flag; "" for none.
func (c *configuration) SetBy(flag string) string { return c.origins[flag] }

// settingText returns a value, or a list of values, as text on the command line would give
// it.
func settingText(value any) any {
	if list, ok := value.([]any); ok {
		return slices.Clone(list)
	}
	if t, ok := value.(time.Time); ok {
		if t.Location().String() == "date-local" { // as the package toml marks a date
			return t.Format(time.DateOnly)
		}
		return t.Format(time.RFC3339Nano)
	}
	return fmt.Sprint(value)
}
