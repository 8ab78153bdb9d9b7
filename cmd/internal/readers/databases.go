package readers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/mirror"
)

// A databaseForm is how a reader lays out its SQLite database.
type databaseForm struct {
	kind string

	feeds, feedKey string // the table of the feeds, and its key
	feedColumns    []string
	feed           func(row) (id, url, title string) // id is what entries name

	entries      string // the table of the entries; its key is id
	entryColumns []string
	entryFeed    string // the column with the feed's id
	byURL        bool   // the id is the URL, which the table of feeds may lack
	entry        func(row) (*mirror.KeptEntry, error)

	folders     string // a query for the folder of each feed, by id; "" if the reader has none
	folderNames string // a query for the names of the folders
	folderTable string // their table
}

// databaseForms are the databases known. The first columns of each table tell them apart.
var databaseForms = []databaseForm{
	{
		kind:  "newsboat", // cache.db
		feeds: "rss_feed", feedKey: "rowid", feedColumns: []string{"rssurl", "title"},
		feed:    func(r row) (id, url, title string) { return r["rssurl"], r["rssurl"], r["title"] },
		entries: "rss_item", entryFeed: "feedurl", byURL: true, entry: newsboatEntry,
		entryColumns: []string{
			"guid", "feedurl", "pubDate", "title", "author", "url", "content",
			"content_mime_type", "enclosure_url", "enclosure_type", "deleted", "base",
		},
	},
	{
		kind:  "freshrss", // the file it writes for a user, and its own database
		feeds: "feed", feedKey: "id", feedColumns: []string{"url", "name"},
		feed: func(r row) (id, url, title string) {
			return r["id"], html.UnescapeString(r["url"]), html.UnescapeString(r["name"])
		},
		entries: "entry", entryFeed: "id_feed", entry: freshrssEntry,
		entryColumns: []string{"guid", "link", "id_feed", "title", "author", "content", "date", "tags", "attributes"},
		// The first category is for feeds without one.
		folderTable: "category",
		folders:     "SELECT id, category FROM feed",
		folderNames: "SELECT id, name FROM category WHERE id <> 1",
	},
}

// foldersOf returns the names of the folders, stored as HTML, by feed id; none if a reader's version
// has no such tables.
func (f *databaseForm) foldersOf(ctx context.Context, c *databaseCopy) (all map[string][]string, err error) {
	all = map[string][]string{}
	for _, table := range []string{f.feeds, f.folderTable} {
		if columns, err := columnsOf(ctx, c.DB, table); f.folders == "" || err != nil || len(columns) == 0 {
			return all, nil
		}
	}
	names := map[string]string{}
	// A join would have as many rows as both tables multiplied, if all rows have one id.
	err = c.eachPair(ctx, f.folderNames, func(folder, name string) { names[folder] = html.UnescapeString(name) })
	if err == nil {
		err = c.eachPair(ctx, f.folders, func(feed, folder string) {
			if name := names[folder]; name != "" {
				c.room -= int64(len(name))
				all[feed] = append(all[feed], name)
			}
		})
	}
	return all, err
}

// eachPair yields the rows of a query for two columns, as far as they can be read.
func (c *databaseCopy) eachPair(ctx context.Context, query string, yield func(key, value string)) error {
	rows, err := c.QueryContext(ctx, query)
	if err != nil {
		return nil
	}
	defer rows.Close()
	for rows.Next() {
		var key, value string
		if rows.Scan(&key, &value) != nil {
			continue
		}
		if c.room -= int64(len(key) + len(value)); c.room >= 0 {
			yield(key, value)
		}
		if c.room < 0 {
			return errRepeats
		}
	}
	return nil
}

// isDatabase reports whether a file is a database of this form.
func (f *databaseForm) isDatabase(ctx context.Context, file string) bool {
	return hasColumns(ctx, file, f.entries, f.entryColumns[:3]...)
}

// source takes the feeds, and then the entries after a mark. A fault of the database and rows
// that cannot be read are damage.
func (f *databaseForm) source(ctx context.Context, s *Source, mark string, yield func(Item) error) error {
	db, err := openCopy(ctx, s.Name)
	if err != nil {
		return err
	}
	defer db.Close()
	if db.Damage != nil {
		if err := yield(Item{Damage: db.Damage}); err != nil {
			return err
		}
	}
	feeds := map[string]Item{} // by id
	folders, err := f.foldersOf(ctx, db)
	if err != nil {
		return err
	}
	for r, err := range readRows(ctx, db, f.feeds, f.feedKey, 0, f.feedColumns...) {
		if r == nil {
			return err
		}
		var found Item
		if err != nil {
			found.Damage = fmt.Errorf("%s, row %s: %w", f.feeds, r[f.feedKey], err)
		} else {
			var id string
			id, found.Feed, found.Title = f.feed(r)
			feeds[id] = found
			for _, name := range folders[id] {
				found.Folders = append(found.Folders, []string{name})
			}
		}
		if err := yield(found); err != nil {
			return err
		}
	}
	after, _ := strconv.ParseInt(mark, 10, 64)
	for r, err := range readRows(ctx, db, f.entries, "id", after, f.entryColumns...) {
		if r == nil {
			return err
		}
		id := r[f.entryFeed]
		found := Item{Feed: feeds[id].Feed, Title: feeds[id].Title, Mark: r["id"]}
		if f.byURL {
			found.Feed = id
		}
		switch {
		case err != nil:
		case found.Feed != "":
			found.Entry, err = f.entry(r)
		case f.byURL:
			err = errors.New("it names no feed")
		default:
			err = fmt.Errorf("there is no feed %s", id)
		}
		if err != nil {
			found.Damage = fmt.Errorf("%s, row %s: %w", f.entries, r["id"], err)
		}
		if err := yield(found); err != nil {
			return err
		}
	}
	return nil
}

// readNewsboat takes newsboat's cache, or its list of feeds.
func readNewsboat(ctx context.Context, s *Source, mark string, yield func(Item) error) error {
	if !isURLs(start(s.Name)) {
		return databaseForms[0].source(ctx, s, mark, yield)
	}
	text, err := readSaved(s.Name)
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		fields := urlFields.FindAllString(line, -1)
		if len(fields) == 0 || !terminal.IsURL(fields[0]) {
			continue
		}
		found := Item{Feed: terminal.FeedName(fields[0])}
		for _, field := range fields[1:] {
			field = strings.Trim(field, `"`)
			if title, ok := strings.CutPrefix(field, "~"); ok {
				found.Named = title
			} else if tag := strings.TrimPrefix(field, "!"); tag != "" { // a hidden feed
				found.Folders = append(found.Folders, []string{tag})
			}
		}
		if err := cmp.Or(ctx.Err(), yield(found)); err != nil {
			return err
		}
	}
	return nil
}

// urlFields matches a word of newsboat's list, which may be in quotation marks.
var urlFields = regexp.MustCompile(`"(\\.|[^"\\])*"|[^\s"]+`)

// isURLs reports whether a file is newsboat's list: after comments, it has a line with an
// address, a query or a program whose output is the feed.
func isURLs(text []byte) bool { return urlsBegin.Match(text) }

var urlsBegin = regexp.MustCompile(`^(\s*(#.*)?\n)*\s*(https?:|file:|exec:|filter:|"query:)`)

func newsboatEntry(r row) (*mirror.KeptEntry, error) {
	if r["guid"]+r["url"]+r["title"] == "" {
		return nil, errNameless
	}
	k := &mirror.KeptEntry{Draft: compose.Draft{
		ID: newsboatID(r), Title: plainText(r["title"]), Content: htmlText(r["content"]), Published: unixTime(r.Int("pubDate")),
		Links: enclosure(alternate(r["url"]), r["enclosure_url"], r["enclosure_type"], ""), Authors: authors(r["author"]),
	}}
	if strings.HasPrefix(r["content_mime_type"], "text/plain") {
		k.Content = plainText(r["content"])
	}
	if k.Content.Type == "html" && isWeb(r["base"]) {
		k.Content.Base = r["base"]
	}
	if r["deleted"] == "1" {
		k.Note = "deleted there"
	}
	return k, nil
}

// newsboatID returns the publisher's id. Where the feed has none, newsboat makes one of the
// link and the date, or of the title.
func newsboatID(r row) string {
	id := strings.TrimSpace(r["guid"])
	if rest, ok := strings.CutPrefix(id, r["url"]); ok && r["url"] != "" && rest != "" && isDate(rest) {
		return ""
	}
	if id == strings.TrimSpace(r["title"]) {
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

// made matches ids that FreshRSS makes where the feed has none.
var made = regexp.MustCompile(`^(urn:sha1:)?[0-9a-f]{32,40}$`)

// publisherID returns an id of FreshRSS; "" for one it has made itself.
func publisherID(id string) string {
	if id = strings.TrimSpace(id); made.MatchString(id) {
		return ""
	}
	return id
}

// unixTime returns a time in seconds; zero for none.
func unixTime(n int64) time.Time {
	if n <= 0 {
		return time.Time{}
	}
	return time.Unix(n, 0).UTC()
}

// freshrssEntry returns an entry. FreshRSS stores titles, authors and addresses as HTML.
func freshrssEntry(r row) (*mirror.KeptEntry, error) {
	k := &mirror.KeptEntry{Draft: compose.Draft{
		ID: publisherID(r["guid"]), Title: htmlText(r["title"]), Content: htmlText(r["content"]),
		Published: unixTime(r.Int("date")), Links: alternate(html.UnescapeString(r["link"])),
	}}
	for author := range strings.SplitSeq(html.UnescapeString(r["author"]), ";") {
		k.Authors = append(k.Authors, authors(strings.TrimSpace(author))...)
	}
	var tags []string
	for tag := range strings.SplitSeq(html.UnescapeString(r["tags"]), "#") {
		tags = append(tags, strings.Trim(tag, " ;"))
	}
	k.Categories = categories(tags)
	var attributes struct {
		Enclosures []struct {
			URL, Type string
			Length    json.Number
		}
	}
	if json.Unmarshal([]byte(r["attributes"]), &attributes) == nil {
		for _, e := range attributes.Enclosures {
			k.Links = enclosure(k.Links, html.UnescapeString(e.URL), e.Type, e.Length.String())
		}
	}
	return k, nil
}
