package main

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestParseMoment(t *testing.T) {
	now := time.Date(2004, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]string{
		"2003-12-13": "2003-12-13T00:00:00Z", "2003-12-13T18:30:02.25+01:00": "2003-12-13T17:30:02.25Z",
		"7d": "2004-02-23T12:00:00Z", "2w": "2004-02-16T12:00:00Z", "48h": "2004-02-28T12:00:00Z",
		"90m": "2004-03-01T10:30:00Z", "1h30m": "2004-03-01T10:30:00Z", " 0d ": "2004-03-01T12:00:00Z",
	} {
		got, err := parseMoment(text, now)
		require.NoError(t, err, text)
		require.Equal(t, want, got.UTC().Format(time.RFC3339Nano), text)
	}
	for _, text := range []string{"", "yesterday", "2003-13-01", "-1d", "-48h", "d", "1.5d", "7", "99999d", "18:30"} {
		_, err := parseMoment(text, now)
		require.ErrorContains(t, err, "is not a time such as", text)
	}
}
