package readers

import (
	"encoding/json"

	"github.com/feedhistory/feedhistory/compose"
)

// A GoogleReaderItem is an entry in the form of Google Reader, as the history server serves it.
type GoogleReaderItem struct {
	ID        string             `json:"id"`
	GUID      string             `json:"guid,omitempty"`          // the publisher's
	Crawled   string             `json:"crawlTimeMsec,omitempty"` // when the server got it
	Stamp     string             `json:"timestampUsec,omitempty"` // the same
	Title     string             `json:"title"`
	Published Number             `json:"published"`
	Author    string             `json:"author,omitempty"`
	States    any                `json:"categories"` // states, folders and tags
	Alternate []GoogleReaderLink `json:"alternate"`
	Canonical []GoogleReaderLink `json:"canonical,omitempty"`
	Enclosure []GoogleReaderLink `json:"enclosure,omitempty"`
	Summary   GoogleReaderText   `json:"summary,omitzero"`
	Origin    GoogleReaderOrigin `json:"origin"`
}

// Draft returns the item as an entry.
func (i *GoogleReaderItem) Draft() compose.Draft {
	d := compose.Draft{
		ID: i.GUID, Title: titleText(i.Title), Authors: authors(i.Author),
		Content: htmlText(i.Summary.Text), Published: unixTime(int64(i.Published)),
	}
	if len(i.Alternate) > 0 {
		d.Links = alternate(i.Alternate[0].Href)
	}
	for _, l := range i.Enclosure {
		d.Links = enclosure(d.Links, l.Href, l.Type, l.Length.String())
	}
	return d
}

// A GoogleReaderLink is a link of an item.
type GoogleReaderLink struct {
	Href   string      `json:"href"`
	Type   string      `json:"type,omitempty"`
	Length json.Number `json:"length,omitempty"`
}

// A GoogleReaderOrigin is the feed of an item.
type GoogleReaderOrigin struct {
	StreamID string `json:"streamId"`
	FeedURL  string `json:"feedUrl"`
	Title    string `json:"title"`
	HTMLURL  string `json:"htmlUrl"`
}

// A Number is a time in seconds.
type Number int64

// A GoogleReaderText is text in HTML.
type GoogleReaderText struct {
	Text string `json:"content"`
}

// A GoogleReaderFeed is a subscription.
type GoogleReaderFeed struct {
	ID         string               `json:"id"`
	Title      string               `json:"title"`
	URL        string               `json:"url"`
	Site       string               `json:"htmlUrl"`
	Categories []GoogleReaderFolder `json:"categories"`
}

// A GoogleReaderFolder is a folder of subscriptions.
type GoogleReaderFolder struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

// GoogleReaderState is the prefix of the states of entries, which are categories.
const GoogleReaderState = googleReaderState
