// Package greader reads the entries of a user by the API of Google Reader, which many
// readers offer, and the form in which it gives them.
package greader

import (
	"cmp"
	"encoding/json"
	"html"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/memory"
	"github.com/feedhistory/feedhistory/mirror"
)

// An Item is an entry in the form of Google Reader, with the fields Inoreader, Feedly and
// FreshRSS add to it.
type Item struct {
	ID        string  `json:"id"`
	OriginID  string  `json:"originId"` // the publisher's id, in Feedly
	GUID      string  `json:"guid"`     // the same, in FreshRSS
	Title     string  `json:"title"`
	Author    string  `json:"author"`
	Published Number  `json:"published"`
	Updated   Number  `json:"updated"`
	Canonical []link  `json:"canonical"`
	Alternate []link  `json:"alternate"`
	Enclosure []link  `json:"enclosure"`
	Summary   content `json:"summary"`
	Content   content `json:"content"`
	Origin    struct {
		Stream  string `json:"streamId"`
		Title   string `json:"title"`
		FeedURL string `json:"feedUrl"`
	} `json:"origin"`
}

// A Number is a number, which may be in a string.
type Number int64

// UnmarshalJSON reads a number, with or without quotation marks. Others are zero.
func (n *Number) UnmarshalJSON(data []byte) error {
	var number json.Number
	if json.Unmarshal([]byte(strings.Trim(string(data), `"`)), &number) != nil {
		return nil
	}
	whole, err := number.Int64()
	if err != nil {
		fraction, _ := number.Float64()
		whole = int64(fraction)
	}
	*n = Number(whole)
	return nil
}

type link struct {
	Href   string      `json:"href"`
	URL    string      `json:"url"` // in Miniflux
	Type   string      `json:"type"`
	Length json.Number `json:"length"`
}

// A content is text, which is an object or a string.
type content struct{ Text string }

// UnmarshalJSON reads {"content": "…"} or a string.
func (c *content) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &c.Text) == nil {
		return nil
	}
	var object struct{ Content string }
	if err := json.Unmarshal(data, &object); err != nil {
		return err
	}
	c.Text = object.Content
	return nil
}

// Feed returns the feed's URL; "" if the item does not have it.
func (i *Item) Feed() string {
	if memory.IsWeb(i.Origin.FeedURL) {
		return i.Origin.FeedURL
	}
	url, ok := strings.CutPrefix(i.Origin.Stream, "feed/")
	if !ok || !memory.IsWeb(url) {
		return ""
	}
	return url
}

// Kept returns the entry; nil if nothing in the item identifies it.
func (i *Item) Kept() *mirror.KeptEntry {
	href := ""
	for _, l := range append(i.Alternate, i.Canonical...) {
		if href == "" && memory.IsWeb(l.Href) {
			href = l.Href
		}
	}
	k := &mirror.KeptEntry{Draft: feedhistory.Draft{
		ID: cmp.Or(strings.TrimSpace(i.OriginID), memory.PublisherID(i.GUID)), Title: memory.HTML(i.Title), Authors: memory.Authors(i.Author), Links: memory.Alternate(href),
		Content:   memory.HTML(cmp.Or(i.Content.Text, i.Summary.Text)),
		Published: memory.Unix(int64(i.Published)), Updated: memory.Unix(int64(i.Updated)),
	}}
	if k.Updated.Before(k.Published) {
		k.Updated = k.Published
	}
	if !strings.ContainsAny(i.Title, "<&") {
		k.Title = memory.Plain(html.UnescapeString(i.Title))
	}
	for _, l := range i.Enclosure {
		k.Links = memory.Enclosure(k.Links, cmp.Or(l.Href, l.URL), l.Type, l.Length.String())
	}
	if k.ID+href+i.Title == "" {
		return nil
	}
	return k
}
