package schema

import (
	"time"

	"github.com/feedhistory/feedhistory/mirror"
)

// Feed is a mirrored feed in JSON.
type Feed struct {
	URL       string `json:"url"`
	Address   string `json:"address,omitempty"` // the URL requested by polls, if it is another
	Alias     string `json:"alias,omitempty"`   // the mirrored feed it has become
	Title     string `json:"title,omitempty"`
	Kind      string `json:"kind"`
	Verdict   string `json:"verdict"`
	AsOf      string `json:"as_of,omitempty"` // when the server's count proved the feed whole
	Source    string `json:"source,omitempty"`
	Entries   int64  `json:"entries"`
	Deleted   int64  `json:"deleted"`
	Documents int64  `json:"documents"`
	Checked   string `json:"archives_as_of,omitempty"` // the time since which each archive has been read
	Newest    string `json:"newest,omitempty"`
	Changed   string `json:"changed,omitempty"`
	Polled    string `json:"polled,omitempty"`
	NextPoll  string `json:"next_poll,omitempty"`
	Wait      string `json:"wait,omitempty"` // the feed's host asks for no requests until then
	Due       bool   `json:"due,omitempty"`
	Gone      bool   `json:"gone,omitempty"`
	Failures  int    `json:"failures,omitempty"`
	Error     string `json:"error,omitempty"`
	Gaps      []Gap  `json:"gaps"`
}

// NewFeed returns a mirrored feed in JSON, given the time of its newest entry.
func NewFeed(f *mirror.Feed, newest time.Time) Feed {
	j := Feed{
		URL: f.URL, Address: f.Address, Alias: f.Alias, Title: f.Title, Kind: f.Kind.String(), Verdict: f.Verdict.String(), Source: f.Source,
		Entries: f.Entries, Deleted: f.Deleted, Documents: f.Documents,
		Changed: Second(f.Changed), Polled: Second(f.Polled), NextPoll: Second(f.Next),
		Wait: Second(f.Wait), Due: f.Due(time.Now()), Gone: f.Gone, Failures: f.Failures, Error: f.Error,
		Gaps: Each(f.Missing(), NewGap),
	}
	j.AsOf, j.Checked = Second(f.WholeAsOf()), Second(f.Checked)
	if !newest.IsZero() {
		j.Newest = Time(newest)
	}
	return j
}
