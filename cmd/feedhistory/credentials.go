package main

import (
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"os"
	"strings"

	"github.com/feedhistory/feedhistory/internal/fetch"
)

// passwordVariable has the password of --user, which others could see on a command
// line.
const passwordVariable = "FEEDHISTORY_PASSWORD"

const noToken = "--token-env: there is nothing in the environment variable that it names; give the name of a variable, not the token"

// The flags for logging in. What they have goes only to the origin of the address.
type credentials struct {
	Header   []string `sep:"none" placeholder:"FIELD" help:"Header field to send to the address's origin, such as 'X-Key: abc' (repeatable)."`
	User     string   `placeholder:"NAME" help:"User to log in as, with the password in the environment variable FEEDHISTORY_PASSWORD."`
	TokenEnv string   `placeholder:"VARIABLE" help:"Environment variable with a bearer token to send."`

	fields http.Header // nil: none
}

// check refuses what contradicts itself.
func (c *credentials) check() error {
	switch {
	case c.User != "" && c.TokenEnv != "":
		return errors.New("--user and --token-env exclude each other")
	case strings.Contains(c.User, ":"):
		return errors.New("--user: a name without a colon; the password is in " + passwordVariable)
	}
	return nil
}

// read reads the flags and the environment.
func (c *credentials) read() error {
	fields := http.Header{}
	for _, field := range c.Header {
		name, value, ok := strings.Cut(field, ":")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return usageError("--header: a name and a value with a colon between them") // the field may be a secret
		}
		value = strings.TrimSpace(value)
		if err := fetch.CheckSecrets(http.Header{name: {value}}); err != nil {
			return usageError("--header: " + err.Error())
		}
		fields.Add(name, value)
	}
	if fields["Authorization"] != nil && (c.User != "" || c.TokenEnv != "") {
		return usageError("--header Authorization excludes --user and --token-env")
	}
	switch {
	case c.User != "":
		password, ok := os.LookupEnv(passwordVariable)
		if !ok {
			return usageError("--user: there is no password in " + passwordVariable)
		}
		fields.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(c.User+":"+password)))
	case c.TokenEnv != "":
		token := strings.TrimSpace(os.Getenv(c.TokenEnv))
		if token == "" {
			return usageError(noToken) // the name may be the token itself
		}
		fields.Set("Authorization", "Bearer "+token)
	}
	if err := fetch.CheckSecrets(fields); err != nil {
		return usageError("the credentials cannot be sent: " + err.Error())
	}
	if len(fields) > 0 {
		c.fields = fields
	}
	return nil
}

// header returns the function by which the clients of the protocols get the fields.
func (c *credentials) header() func(context.Context, string) (http.Header, error) {
	if c.fields == nil {
		return nil
	}
	return func(context.Context, string) (http.Header, error) { return c.fields, nil }
}
