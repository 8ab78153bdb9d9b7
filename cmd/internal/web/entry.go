package web

import (
	"cmp"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

type entryPage struct {
	Feed    string // the short name of the feed
	Of      string // the title of the feed
	ID      string
	State   mirror.State
	Removed time.Time // when the entry left the feed; zero if it is part of it
	entryText
	Added, Changed time.Time
	Link           string // the original; "" if unknown
	Enclosures     []enclosure
	Play           player
	Images         imageMode
	HasImages      bool
	Older, Newer   *neighbour
	OlderHit       *neighbour // the hits of the search before and after the entry
	NewerHit       *neighbour
	Versions       []entryText
	Strip          *strip        // nil if there is nothing to show around the entry
	Search         string        // the search whose words are marked
	Marked         template.HTML // the title with these words marked
}

// A player says whether enclosures can be played on the page.
type player uint8

const (
	noPlayer player = iota
	idlePlayer
	runningPlayer // audio starts, because the entry before has been played
)

// playerOf returns the player a query asks for.
func playerOf(q url.Values) player {
	switch {
	case q.Get("play") == "on":
		return runningPlayer
	case q.Has("play"):
		return idlePlayer
	}
	return noPlayer
}

// Runs reports whether audio starts.
func (p player) Runs() bool { return p == runningPlayer }

// An imageMode says whether images are shown.
type imageMode uint8

const (
	imageLinks   imageMode = iota // as links
	imagesOnce                    // in this entry
	imagesAlways                  // in all entries of the feed
)

// imageModeOf returns how a request wants images.
func imageModeOf(r *http.Request) imageMode {
	switch {
	case showsImages(r):
		return imagesAlways
	case r.URL.Query().Has("images"):
		return imagesOnce
	}
	return imageLinks
}

// Always reports whether images of all entries of the feed are shown.
func (m imageMode) Always() bool { return m == imagesAlways }

// More returns the query of the same page with one more setting.
func (p *entryPage) More(asked string) string {
	q := url.Values{"id": {p.ID}}
	if p.Search != "" {
		q.Set("q", p.Search)
	}
	if p.Play != noPlayer {
		q.Set("play", "")
	}
	if asked != "" {
		q.Set(asked, "")
	}
	return "?" + q.Encode()
}

// AllAudio reports whether all enclosures are audio.
func (p *entryPage) AllAudio() bool {
	return !slices.ContainsFunc(p.Enclosures, func(e enclosure) bool { return !e.Audio })
}

// Day returns the entry's day, for the URL of the day in all years.
func (p *entryPage) Day() string {
	at := p.Updated
	if at.IsZero() {
		at = p.Published
	}
	if at.IsZero() {
		at = p.Added
	}
	return at.UTC().Format("01-02")
}

// An entryText is the text of an entry, or of an earlier version.
type entryText struct {
	Title              string
	TitleLang, Lang    string // the languages of the title and of the content; "" if unknown
	Updated, Published time.Time
	Authors            string
	Summary            template.HTML // "" if there is content
	Content            template.HTML
	Cut                bool // whether it was too long to be shown whole
	Episode            episode
	Elsewhere          string        // where the content is, if not in the feed
	Damaged            bool          // whether the stored text cannot be read
	Source             string        // where the copy comes from, if not from the feed itself
	Changes            template.HTML // made by the next version

	plain string // the title and the text
}

// Empty reports whether there is nothing to show.
func (w *entryText) Empty() bool {
	return w.Summary == "" && w.Content == "" && w.Elsewhere == "" && !w.Damaged
}

// showEntry shows an entry with its earlier versions.
func (s *Server) showEntry(w http.ResponseWriter, r *http.Request) error {
	ctx := r.Context()
	feed, err := s.feedOf(r)
	if err != nil {
		return err
	}
	record, err := mirror.Lookup(ctx, s.store, feed.URL, r.URL.Query().Get("id"))
	if err != nil {
		return err
	}
	e, err := record.Entry()
	q := r.URL.Query()
	mode := imageModeOf(r)
	p := &entryPage{
		Play: playerOf(q), Images: mode, Search: strings.TrimSpace(q.Get("q")),
		Feed: republish.Name(feed.URL), Of: titleOf(feed), ID: record.ID, State: record.State,
		entryText: newWording(record.Content, record.Copy, e, err, mode != imageLinks), Added: record.Added, Changed: record.Changed,
		Link: webLink(record.Content.Link),
	}
	if p.State != mirror.Live {
		p.Removed = record.Changed
		if when := record.Tombstone.When; !when.IsZero() {
			p.Removed = when
		}
	}
	if e != nil {
		p.Enclosures = enclosuresOf(e)
	}
	for v, err := range s.store.Versions(ctx, feed.URL, record.ID) {
		if err != nil {
			return err
		}
		e, err := v.Entry()
		p.Versions = append(p.Versions, newWording(v.Content, v.Copy, e, err, false))
	}
	after := &p.entryText
	for i := range p.Versions {
		p.Versions[i].Changes = difference(p.Versions[i].plain, after.plain)
		after = &p.Versions[i]
	}
	if p.Older, p.Newer, err = s.feeds.neighbours(ctx, record); err != nil {
		return err
	}
	if words := foldedWords(p.Search); len(words) > 0 {
		if p.OlderHit, p.NewerHit, err = s.feeds.hitsAround(ctx, record, p.Search); err != nil {
			return err
		}
	}
	if p.Strip, err = s.feeds.stripOf(ctx, feed, record); err != nil {
		return err
	}
	p.HasImages = p.Episode.Artwork != "" || strings.Contains(string(p.Content+p.Summary), ">[Image") || strings.Contains(string(p.Content+p.Summary), "<img ")
	p.mark()
	if p.Play != noPlayer || p.Images != imageLinks {
		w.Header().Set("Content-Security-Policy", policyWith(p.Play != noPlayer, p.Images != imageLinks))
	}
	return s.render(w, r, http.StatusOK, "entry", p.Title, p)
}

// mark marks the words of the search.
func (p *entryPage) mark() {
	words := foldedWords(p.Search)
	p.Marked = marked(p.Title, words)
	p.Content, p.Summary = markedIn(p.Content, words), markedIn(p.Summary, words)
}

func newWording(c mirror.Content, from mirror.Copy, e *feedhistory.Entry, err error, images bool) entryText {
	w := entryText{Title: strings.TrimSpace(c.Title), Updated: c.Updated, Published: c.Published, Damaged: err != nil, Source: from.Source}
	if err != nil {
		return w
	}
	content, summary := e.Content(), e.Summary()
	w.plain = w.Title + "\n" + cmp.Or(plain(content), plain(summary))
	w.TitleLang, w.Lang = e.Title().Lang, content.Lang
	w.Content, w.Cut = sanitise(content, images)
	if w.Content == "" {
		w.Elsewhere, w.Lang = webLink(content.Src), summary.Lang
		w.Summary, w.Cut = sanitise(summary, images)
	}
	if item, err := e.Decode(); err == nil && item != nil {
		var names []string
		for _, person := range item.Authors {
			if name := strings.TrimSpace(person.Name); name != "" {
				names = append(names, name)
			}
		}
		w.Authors = strings.Join(names, ", ")
		w.Episode = episodeOf(item)
	}
	return w
}
