package logins

import (
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/exit"
)

// PasswordVariable is the environment variable with the password for --user. On the
// command line, other users of the machine could see the password.
const PasswordVariable = "FEEDHISTORY_PASSWORD"

const NoToken = "--token-env: the environment variable that it names is empty or not set; give the name of a variable, not the token"

// Credentials are the flags for logging in. The command sends the credentials only to the
// origin of the address.
type Credentials struct {
	Header   []string `sep:"none" placeholder:"FIELD" help:"Header field to send to the address's origin, such as 'X-Key: abc', or @FILE with such fields, one a line, which other users of the machine cannot see (repeatable)."`
	User     string   `placeholder:"NAME" help:"User to log in as, with the password in the environment variable FEEDHISTORY_PASSWORD."`
	TokenEnv string   `placeholder:"VARIABLE" help:"Environment variable with a bearer token to send."`

	Fields http.Header `kong:"-"` // nil: none
}

// Check refuses incompatible flags, and a user name with a colon.
func (c *Credentials) Check() error {
	switch {
	case c.User != "" && c.TokenEnv != "":
		return errors.New("--user and --token-env exclude each other")
	case strings.Contains(c.User, ":"):
		return errors.New("--user: a name has no colon; set the password in " + PasswordVariable)
	}
	return nil
}

// Load reads the flags and the environment.
func (c *Credentials) Load() error {
	fields := http.Header{}
	given, err := headerLines(c.Header)
	if err != nil {
		return err
	}
	for _, field := range given {
		name, value, ok := strings.Cut(field, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return exit.UsageError("--header: give a name and a value with a colon between them") // the message does not quote the field: it may be a secret
		}
		value = strings.TrimSpace(value)
		if err := (feedhistory.Credential{Header: http.Header{name: {value}}}).Check(); err != nil {
			return exit.UsageError("--header: " + err.Error())
		}
		fields.Add(name, value)
	}
	if fields["Authorization"] != nil && (c.User != "" || c.TokenEnv != "") {
		return exit.UsageError("--header Authorization excludes --user and --token-env")
	}
	switch {
	case c.User != "":
		password, ok := os.LookupEnv(PasswordVariable)
		if !ok {
			return exit.UsageError("--user: there is no password in " + PasswordVariable)
		}
		fields.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(c.User+":"+password)))
	case c.TokenEnv != "":
		token := strings.TrimSpace(os.Getenv(c.TokenEnv))
		if token == "" {
			return exit.UsageError(NoToken) // the message does not quote the name: it may be the token itself
		}
		fields.Set("Authorization", "Bearer "+token)
	}
	if err := (feedhistory.Credential{Header: fields}).Check(); err != nil {
		return exit.UsageError("the credentials cannot be sent: " + err.Error())
	}
	if len(fields) > 0 {
		c.Fields = fields
	}
	return nil
}

// headerLines returns the fields of --header, with those of files.
func headerLines(given []string) (fields []string, err error) {
	for _, field := range given {
		file, ok := strings.CutPrefix(field, "@")
		if !ok {
			fields = append(fields, field)
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, unreadable("--header", err)
		}
		for line := range strings.Lines(string(text)) {
			if line = strings.TrimSpace(line); line != "" {
				fields = append(fields, line)
			}
		}
	}
	return fields, nil
}

// unreadable returns the error for a flag whose file cannot be read.
func unreadable(flag string, err error) error {
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return exit.UsageError(flag + ": " + failed.Path + ": " + failed.Err.Error())
	}
	return exit.UsageError(flag + ": " + err.Error())
}

// Authorize returns the function from which the clients of the harvest protocols get the
// header fields; nil if there are none.
func (c *Credentials) Authorize() func(context.Context, string) (http.Header, error) {
	if c.Fields == nil {
		return nil
	}
	return func(context.Context, string) (http.Header, error) { return c.Fields, nil }
}
