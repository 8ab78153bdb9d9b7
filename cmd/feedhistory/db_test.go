package main

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror/sqlstore/pgtest"
)

// The scripts about mirrored feeds also run on PostgreSQL.
func TestScriptsOnPostgreSQL(t *testing.T) {
	feedtest.Long(t)
	server, err := pgtest.Start()
	if !errors.Is(err, pgtest.ErrMissing) {
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, server.Stop()) })
	}
	server.Database(t) // skips without a server
	params := scripts(func() string { return server.Database(t) })
	for _, name := range []string{"sync", "syncevery", "synckill", "list", "entries", "export", "move"} {
		params.Files = append(params.Files, filepath.Join("testdata", "script", name+".txtar"))
	}
	testscript.Run(t, params)
}
