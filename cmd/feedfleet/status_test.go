package main

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/fleet"
)

// The whole output of status: without feeds, and with feeds and hosts in every state.
func TestStatusText(t *testing.T) {
	now := time.Date(2003, 12, 13, 12, 0, 0, 0, time.UTC)
	for _, test := range []struct {
		status fleet.Status
		want   string
	}{
		{fleet.Status{}, `
  feeds     0 on 0 hosts
  running   0 hosts
  due       0
  new       0 not polled yet
  failing   0
  gone      0
  dead      0
`}, {fleet.Status{
			Feeds: 8, Hosts: 4, Running: 1, Due: 3, Late: 1, New: 2, Failing: 2, Gone: 1, Dead: 1,
			Verdicts: map[string]int64{"partial": 1, "whole": 3, "window": 2},
			ByHost: []fleet.HostStatus{
				{Host: "a.example", Feeds: 3, Due: 2, Late: 1, Running: true},
				{Host: "b.example", Feeds: 2, Due: 1, Failing: 2, Next: now.Add(-time.Hour)},
				{Host: "c.example", Feeds: 2, Dead: 1, Next: now.Add(90 * time.Minute)},
				{Host: "d\x1b[2J.example", Feeds: 1},
			},
			Errors: []fleet.FailingFeed{{
				URL: "https://b.example/feed", Error: "https://b.example/feed: 404 Not Found", Failures: 2, Next: now.Add(2 * time.Hour),
			}, {URL: "https://b.example/late", Error: "timed out", Failures: 1, Next: now.Add(-time.Minute)}},
			Letters: []fleet.DeadLetter{{URL: "https://c.example/feed", Reason: "its polls end with the worker", Died: now.Add(-48 * time.Hour)}},
		}, `
  feeds     8 on 4 hosts
  running   1 host
  due       3, 1 of them for more than 5m
  new       2 not polled yet
  failing   2
  gone      1
  dead      1
  verdicts  whole 3, window 2, partial 1

   FEEDS      DUE     LATE  FAILING     DEAD   NEXT  HOST
       3        2        1        0        0    now  a.example
       2        1        0        2        0    due  b.example
       2        0        0        0        1     2h  c.example
       1        0        0        0        0  never  d�[2J.example

https://b.example/feed
  - 404 Not Found; the next try is due in 2h

https://b.example/late
  - timed out; the next try is due now

https://c.example/feed
  - dead letter, since 2003-12-11 12:00:00Z: its polls end with the worker
`},
	} {
		var out strings.Builder
		p := &terminal.Page{W: &out}
		showStatus(p, &test.status, 5*time.Minute, now)
		require.NoError(t, p.Err)
		require.Equal(t, strings.TrimPrefix(test.want, "\n"), out.String())
	}
}

// On a narrow terminal, no line of the hosts is longer than it.
func TestNarrowStatus(t *testing.T) {
	now := time.Date(2003, 12, 13, 12, 0, 0, 0, time.UTC)
	var out strings.Builder
	p := &terminal.Page{W: &out, Width: 30}
	showStatus(p, &fleet.Status{ByHost: []fleet.HostStatus{{Host: "a.example", Feeds: 3, Due: 2, Late: 1, Running: true}}}, 5*time.Minute, now)
	require.NoError(t, p.Err)
	_, hosts, _ := strings.Cut(out.String(), "\n\n")
	require.Equal(t, "a.example\n  3 feeds · 2 due · 1 late · 0\n  failing · 0 dead · next now\n", hosts)
}
