package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/url"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/backfill"
)

// channels recovers the videos of a channel, of which a feed shows the latest, by an
// installed yt-dlp, which knows how to list them at many sites. It is a backfill.Method of
// the command, because a library should start no programs.
type channels struct{ tell func(string) }

const ytdlp = "yt-dlp"

// The limits on yt-dlp.
const (
	mostListing = 256 << 20 // bytes
	mostTabs    = 4         // lists within lists: a channel has one for each of its tabs
)

// listingTime is how long a list may take.
var listingTime = 10 * time.Minute

// channelSites are the sites whose feeds lead to channels yt-dlp lists. It is not run for
// others: it would look for videos at any address a feed names.
var channelSites = []string{"youtube.com", "vimeo.com", "dailymotion.com", "soundcloud.com", "bandcamp.com", "twitch.tv", "odysee.com", "rumble.com", "bitchute.com"}

// Name implements backfill.Method.
func (channels) Name() string { return ytdlp }

// channelOf returns the page of a feed's channel; "" if it is at none of the sites.
func channelOf(doc *feedhistory.Document) string {
	link, _ := doc.Links.Rel("alternate")
	u, err := url.Parse(link.Href)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || !slices.ContainsFunc(channelSites, func(site string) bool {
		return u.Hostname() == site || strings.HasSuffix(u.Hostname(), "."+site)
	}) {
		return ""
	}
	return link.Href
}

// Recognise implements backfill.Method.
func (channels) Recognise(doc *feedhistory.Document) backfill.Sign {
	if doc == nil || doc.Kind() != feedhistory.Plain || channelOf(doc) == "" {
		return backfill.No
	}
	return backfill.Any
}

// Probe implements backfill.Method. It runs yt-dlp, and says why that failed; the next walk
// tries again.
func (m channels) Probe(ctx context.Context, _ *feedhistory.Client, doc *feedhistory.Document, p *backfill.Probe) (bool, error) {
	list, err := m.list(ctx, doc)
	if err != nil && ctx.Err() == nil && m.tell != nil {
		m.tell(err.Error())
	}
	p.Read = list
	return list != nil, err
}

// Walk implements backfill.Method. There is one document: the videos of the list that are not
// known yet, newest first. A list has no times, or those the site shows, such as two years ago.
func (m channels) Walk(ctx context.Context, _ *feedhistory.Client, doc *feedhistory.Document, p *backfill.Probe) iter.Seq2[*feedhistory.Document, error] {
	return func(yield func(*feedhistory.Document, error) bool) {
		list, _ := p.Read.(*feedhistory.Document)
		if list == nil {
			var err error
			if list, err = m.list(ctx, doc); err != nil {
				yield(nil, err)
				return
			}
		}
		known := map[string]bool{}
		for e, err := range p.Known(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			known[e.ID] = true
		}
		list.Entries = slices.DeleteFunc(list.Entries, func(e *feedhistory.Entry) bool { return known[e.ID] })
		yield(list, nil)
	}
}

// A listedVideo is a video, or a list of them, as yt-dlp prints it with --flat-playlist -J.
type listedVideo struct {
	ID          string
	Title       string
	URL         string
	Description string
	Timestamp   float64
	Entries     []listedVideo
}

// videos returns the videos of a list, and of the lists in it.
func (v listedVideo) videos(depth int) (all []listedVideo) {
	for _, e := range v.Entries {
		switch {
		case e.Entries != nil && depth < mostTabs:
			all = append(all, e.videos(depth+1)...)
		case e.ID != "" && strings.HasPrefix(e.URL, "http"):
			all = append(all, e)
		}
	}
	return all
}

// list returns the videos of a feed's channel as a document, under the IDs the feed gives
// them. It believes a list only if it has a video of the feed.
func (m channels) list(ctx context.Context, doc *feedhistory.Document) (*feedhistory.Document, error) {
	channel := channelOf(doc)
	out, err := run(ctx, channel)
	if err != nil {
		return nil, err
	}
	var all listedVideo
	if err := json.Unmarshal(out, &all); err != nil {
		return nil, fmt.Errorf("yt-dlp has not listed %s: its output is not the JSON of a list", channel)
	}
	videos, known := all.videos(0), map[string]string{}
	for _, e := range doc.Entries {
		link, _ := e.Links.Rel("alternate")
		known[link.Href] = e.ID
	}
	at := slices.IndexFunc(videos, func(v listedVideo) bool { return known[v.URL] != "" })
	if at < 0 {
		return nil, fmt.Errorf("yt-dlp lists no video of the feed at %s, so the list is not the feed's", channel)
	}
	// The feed's IDs end with the site's, as in yt:video:…, or are the addresses.
	prefix, numbered := strings.CutSuffix(known[videos[at].URL], videos[at].ID)
	var items []map[string]string
	for _, v := range videos {
		item := map[string]string{"id": known[v.URL], "url": v.URL, "title": v.Title, "content_text": v.Description}
		if item["id"] == "" && numbered {
			item["id"] = prefix + v.ID
		} else if item["id"] == "" {
			item["id"] = v.URL
		}
		if v.Timestamp > 0 {
			item["date_published"] = time.Unix(int64(v.Timestamp), 0).UTC().Format(time.RFC3339)
		}
		items = append(items, item)
	}
	text, err := json.Marshal(map[string]any{"version": "https://jsonfeed.org/version/1.1", "title": doc.Title, "items": items})
	if err != nil {
		return nil, err
	}
	list, err := feedhistory.Parse(bytes.NewReader(text), channel)
	if err != nil {
		return nil, err
	}
	list.Response = feedhistory.Response{Requested: channel, Received: time.Now()}
	list.Entries[0].Source.Response = list.Response // shared by all entries
	for _, e := range list.Entries {
		e.KeptBy = ytdlp
	}
	return list, nil
}

// run returns the output of yt-dlp for a channel. The errors are sentences for people.
func run(ctx context.Context, channel string) ([]byte, error) {
	program, err := exec.LookPath(ytdlp)
	if err != nil {
		return nil, fmt.Errorf("%s has more than its feed shows: install yt-dlp, which --backfill asks for the list", channel)
	}
	ctx, cancel := context.WithTimeout(ctx, listingTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "--ignore-config", "--no-warnings", "--flat-playlist", "--extractor-args", "youtubetab:approximate_date", "-J", "--", channel)
	out, said := limitedBuffer{most: mostListing}, limitedBuffer{most: 64 << 10}
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &said, time.Second
	switch err = cmd.Run(); {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		err = fmt.Errorf("it took longer than %v", listingTime)
	case err == nil && out.over:
		err = fmt.Errorf("its list has more than %d bytes", mostListing)
	case err != nil && said.Len() > 0:
		text := strings.TrimSpace(said.String())
		last := text[strings.LastIndexByte(text, '\n')+1:]
		err = errors.New(strings.TrimSuffix(strings.TrimPrefix(last, "ERROR: "), ".") + "; a newer yt-dlp may")
	}
	if err != nil {
		return nil, fmt.Errorf("yt-dlp has not listed %s: %w", channel, err)
	}
	return out.Bytes(), nil
}

// A limitedBuffer keeps the beginning of what is written to it.
type limitedBuffer struct {
	bytes.Buffer
	most int
	over bool // there was more
}

// Write implements io.Writer.
func (b *limitedBuffer) Write(p []byte) (int, error) {
	if b.over = b.over || b.Len()+len(p) > b.most; b.over {
		return len(p), nil
	}
	return b.Buffer.Write(p)
}
