// Package freshrss reads the SQLite file that FreshRSS writes for a user, and its own
// database.
package freshrss

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"iter"
	"strconv"
	"strings"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/memory"
	"github.com/feedhistory/feedhistory/cmd/internal/memory/rows"
	"github.com/feedhistory/feedhistory/mirror"
)

// Is reports whether a file is a database of FreshRSS.
func Is(ctx context.Context, file string) bool {
	return rows.Has(ctx, file, "entry", "guid", "link", "id_feed") && rows.Has(ctx, file, "feed", "url", "name")
}

// A feed is a row of the table feed.
type feed struct{ url, name string }

// Read yields the feeds of a user, and then the entries.
func Read(ctx context.Context, file, mark string) iter.Seq2[memory.Found, error] {
	return func(yield func(memory.Found, error) bool) {
		db, err := rows.Open(ctx, file)
		if err != nil {
			yield(memory.Found{}, err)
			return
		}
		defer db.Close()
		feeds := map[string]feed{}
		goesOn := rows.Feeds(ctx, db, "feed", "id", []string{"url", "name"}, yield, func(row rows.Row) (url, title string) {
			f := feed{html.UnescapeString(row["url"]), html.UnescapeString(row["name"])}
			feeds[row["id"]] = f
			return f.url, f.name
		})
		if !goesOn {
			return
		}
		after, _ := strconv.ParseInt(mark, 10, 64)
		items := rows.Read(ctx, db, "entry", "id", after, "guid", "title", "author", "content", "link", "date", "id_feed", "tags", "attributes")
		for row, err := range items {
			if row == nil {
				yield(memory.Found{}, err)
				return
			}
			f, known := feeds[row["id_feed"]]
			found := memory.Found{Feed: f.url, Title: f.name, Mark: row["id"]}
			switch {
			case err != nil:
				found.Damage = fmt.Errorf("entry, row %s: %w", row["id"], err)
			case !known:
				found.Damage = fmt.Errorf("entry, row %s: there is no feed %s", row["id"], row["id_feed"])
			default:
				found.Entry = entryOf(row)
			}
			if !yield(found, nil) {
				return
			}
		}
	}
}

// entryOf returns an entry. FreshRSS stores titles, authors and addresses as HTML.
func entryOf(row rows.Row) *mirror.KeptEntry {
	link := html.UnescapeString(row["link"])
	k := &mirror.KeptEntry{Draft: feedhistory.Draft{
		ID: memory.PublisherID(row["guid"]), Title: memory.HTML(row["title"]), Content: memory.HTML(row["content"]),
		Published: memory.Unix(row.Int("date")), Links: memory.Alternate(link),
	}}
	for author := range strings.SplitSeq(html.UnescapeString(row["author"]), ";") {
		k.Authors = append(k.Authors, memory.Authors(strings.TrimSpace(author))...)
	}
	var tags []string
	for tag := range strings.SplitSeq(html.UnescapeString(row["tags"]), "#") {
		tags = append(tags, strings.Trim(tag, " ;"))
	}
	k.Categories = memory.Categories(tags)
	var attributes struct {
		Enclosures []struct {
			URL, Type string
			Length    json.Number
		}
	}
	if json.Unmarshal([]byte(row["attributes"]), &attributes) == nil {
		for _, e := range attributes.Enclosures {
			k.Links = memory.Enclosure(k.Links, html.UnescapeString(e.URL), e.Type, e.Length.String())
		}
	}
	return k
}
