package feedxml

import (
	"strings"

	"github.com/mmcdole/gofeed"
	ext "github.com/mmcdole/gofeed/extensions"
	gofeedjson "github.com/mmcdole/gofeed/json"

	"github.com/feedhistory/feedhistory/internal/markup"
)

// PersonOf reads "jane@example.org (Jane Doe)" and its variants.
func PersonOf(text string) *gofeed.Person {
	if text = strings.TrimSpace(text); !strings.Contains(text, "@") { // gofeed would return the same
		return &gofeed.Person{Name: text}
	}
	feed, err := new(gofeed.DefaultJSONTranslator).Translate(&gofeedjson.Feed{Author: &gofeedjson.Author{Name: text}})
	if err != nil {
		return &gofeed.Person{Name: text}
	}
	return feed.Author
}

// rssAuthor returns the author named by a text, or else by Atom elements; nil if there
// is none.
func rssAuthor(text string, atom []ext.Extension) *gofeed.Person {
	switch {
	case text != "":
		return PersonOf(text)
	case len(atom) > 0:
		p := gofeed.Person{Name: value(atom[0].Children["name"]), Email: value(atom[0].Children["email"])}
		if p != (gofeed.Person{}) {
			return &p
		}
	}
	return nil
}

// rssImage returns the item's image: one it names, or the first one in its text.
func rssImage(item *gofeed.Item, itunes string) *gofeed.Image {
	if itunes != "" {
		return &gofeed.Image{URL: itunes}
	}
	for _, c := range item.Extensions["media"]["content"] {
		if strings.Contains(c.Attrs["type"], "image") || strings.Contains(c.Attrs["medium"], "image") {
			return &gofeed.Image{URL: c.Attrs["url"]}
		}
	}
	for _, enclosure := range item.Enclosures {
		if strings.HasPrefix(enclosure.Type, "image/") {
			return &gofeed.Image{URL: enclosure.URL}
		}
	}
	return imageIn(item.Content, item.Description)
}

// imageIn returns the first image in any of the texts; nil if there is none.
func imageIn(texts ...string) *gofeed.Image {
	src, ok := markup.FirstImage(texts...)
	if !ok {
		return nil
	}
	return &gofeed.Image{URL: src}
}
