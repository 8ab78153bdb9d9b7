// Command gofeed is Go's gofeed with the loop that people write first: from
// document to document until there is no link, each id once.
//
//	gofeed URL
package main

import (
	"encoding/json"
	"log"
	neturl "net/url"
	"os"

	"github.com/mmcdole/gofeed"
	"github.com/mmcdole/gofeed/atom"
)

func main() {
	entries, seen, url := []map[string]string{}, map[string]bool{}, os.Args[1]
	for n := 0; url != "" && n < 100; n++ {
		parser := gofeed.NewParser()
		parser.KeepOriginalFeed = true // only the original feed has the relations of links
		feed, err := parser.ParseURL(url)
		if err != nil && n == 0 {
			log.Fatal(err)
		} else if err != nil {
			break
		}
		for _, item := range feed.Items {
			if !seen[item.GUID] {
				entries = append(entries, map[string]string{"id": item.GUID, "title": item.Title})
			}
			seen[item.GUID] = true
		}
		url = older(url, feed)
	}
	_ = json.NewEncoder(os.Stdout).Encode(map[string]any{"entries": entries})
}

// older returns the address of the next document back in time, or "".
func older(base string, feed *gofeed.Feed) string {
	links := map[string]string{}
	if original, ok := feed.OriginalFeed().(*atom.Feed); ok {
		for _, l := range original.Links {
			links[l.Rel] = l.Href
		}
	}
	for _, l := range feed.Extensions["atom"]["link"] {
		links[l.Attrs["rel"]] = l.Attrs["href"]
	}
	for _, rel := range []string{"prev-archive", "next"} {
		if at, err := neturl.Parse(base); err == nil && links[rel] != "" {
			if at, err = at.Parse(links[rel]); err == nil {
				return at.String()
			}
		}
	}
	return ""
}
