// Package newsboat reads the cache of newsboat.
package newsboat

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/memory"
	"github.com/feedhistory/feedhistory/cmd/internal/memory/rows"
	"github.com/feedhistory/feedhistory/mirror"
)

// Is reports whether a file is newsboat's cache.db.
func Is(ctx context.Context, file string) bool {
	return rows.Has(ctx, file, "rss_item", "guid", "feedurl", "pubDate")
}

// Read yields the feeds of a cache, and then its items.
func Read(ctx context.Context, file, mark string) iter.Seq2[memory.Found, error] {
	return func(yield func(memory.Found, error) bool) {
		db, err := rows.Open(ctx, file)
		if err != nil {
			yield(memory.Found{}, err)
			return
		}
		defer db.Close()
		titles := map[string]string{}
		goesOn := rows.Feeds(ctx, db, "rss_feed", "rowid", []string{"rssurl", "title"}, yield, func(row rows.Row) (url, title string) {
			titles[row["rssurl"]] = row["title"]
			return row["rssurl"], row["title"]
		})
		if !goesOn {
			return
		}
		after, _ := strconv.ParseInt(mark, 10, 64)
		items := rows.Read(ctx, db, "rss_item", "id", after, "guid", "title", "author", "url", "feedurl", "pubDate", "content",
			"content_mime_type", "enclosure_url", "enclosure_type", "deleted", "base")
		for row, err := range items {
			if row == nil {
				yield(memory.Found{}, err)
				return
			}
			found := memory.Found{Feed: row["feedurl"], Title: titles[row["feedurl"]], Mark: row["id"]}
			switch {
			case err != nil:
				found.Damage = fmt.Errorf("rss_item, row %s: %w", row["id"], err)
			case row["feedurl"] == "":
				found.Damage = fmt.Errorf("rss_item, row %s: it names no feed", row["id"])
			case row["guid"]+row["url"]+row["title"] == "":
				found.Damage = fmt.Errorf("rss_item, row %s: it has neither an id nor a link nor a title", row["id"])
			default:
				found.Entry = entryOf(row)
			}
			if !yield(found, nil) {
				return
			}
		}
	}
}

func entryOf(row rows.Row) *mirror.KeptEntry {
	k := &mirror.KeptEntry{Draft: feedhistory.Draft{
		ID: idOf(row), Title: memory.Plain(row["title"]), Published: memory.Unix(row.Int("pubDate")),
		Links: memory.Enclosure(memory.Alternate(row["url"]), row["enclosure_url"], row["enclosure_type"], ""), Authors: memory.Authors(row["author"]),
	}}
	k.Content = memory.HTML(row["content"])
	if kind := row["content_mime_type"]; strings.HasPrefix(kind, "text/plain") {
		k.Content = memory.Plain(row["content"])
	}
	if k.Content.Type == feedhistory.TextHTML && memory.IsWeb(row["base"]) {
		k.Content.Base = row["base"]
	}
	if row["deleted"] == "1" {
		k.Note = "deleted there"
	}
	return k
}

// idOf returns the publisher's id. Where the feed has none, newsboat makes one of the link
// and the date, or of the title.
func idOf(row rows.Row) string {
	id := strings.TrimSpace(row["guid"])
	if rest, ok := strings.CutPrefix(id, row["url"]); ok && row["url"] != "" && rest != "" && isDate(rest) {
		return ""
	}
	if id == strings.TrimSpace(row["title"]) {
		return ""
	}
	return id
}

func isDate(text string) bool {
	for _, layout := range []string{time.RFC1123Z, time.RFC1123, time.RFC822Z, time.RFC822, time.RFC3339, time.DateOnly, "Mon, 2 Jan 2006 15:04:05 -0700", "Mon, 2 Jan 2006 15:04:05 MST"} {
		if _, err := time.Parse(layout, strings.TrimSpace(text)); err == nil {
			return true
		}
	}
	return false
}
