package backfill

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/internal/chain"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/settings"
)

// ActivityPub recovers the posts of an account of the fediverse, for the account's own RSS
// feed, from its outbox. The page the feed links to leads there: it describes the account
// if it is asked for activities. Boosts and replies to others are left out, as they are in
// such feeds. A server speaks for its own host only, so posts of other hosts do not count.
type ActivityPub struct{}

// Name returns "activitypub".
func (ActivityPub) Name() string { return "activitypub" }

// Recognise looks for the address of an account's page, as in https://example.org/@ada.
func (ActivityPub) Recognise(doc *feedhistory.Document) Sign {
	if doc == nil || doc.Kind() != feedhistory.KindPlain || len(doc.Entries) == 0 {
		return No
	}
	page, _ := doc.Links.Rel("alternate")
	if _, rest, _ := strings.Cut(page.Href, "://"); !strings.HasPrefix(rest, feedhistory.HostOf(doc.URL)+"/@") {
		return No
	}
	return Any
}

// Probe requests the account, and then the first page of its outbox, which must name
// entries of the feed by the feed's own ids.
func (ActivityPub) Probe(ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, p *Probe) (bool, error) {
	s, err := newSource(ctx, c, doc, p)
	if err != nil {
		return false, err
	}
	o := &outbox{source: s, seen: set{}}
	first, err := o.first()
	if err != nil {
		if e, ok := errors.AsType[*feedhistory.FetchError](err); ok && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden) {
			p.Reason = "the server shows an account's posts only to other servers of the fediverse, which sign their requests"
		}
		return false, answer{err: err}.failure()
	}
	p.Read = first
	return ids(doc.Entries).hasAny(first.doc.Entries), nil
}

// Documents yields the pages of the outbox, and then the feed again if it has changed.
func (ActivityPub) Documents(ctx context.Context, c *feedhistory.Client, doc *feedhistory.Document, p *Probe) iter.Seq2[*feedhistory.Document, error] {
	return walked(ctx, c, doc, p, func(s *source, yield func(*feedhistory.Document, error) bool) {
		o, err := &outbox{source: s, seen: set{}}, error(nil)
		page, _ := p.Read.(*outboxPage)
		if at := p.Place(); at != "" {
			page, err = o.page(at)
		} else if page == nil {
			page, err = o.first()
		}
		if o.walk(p, page, err, yield) {
			closing(ctx, c, doc)(yield)
		}
	})
}

// An outbox is a walk over the pages of an account's posts.
type outbox struct {
	*source
	seen   set // the ids of activities, and the URLs of pages asked for
	barren int // pages in a row without new ones
}

// An outboxPage is a page of posts.
type outboxPage struct {
	doc  *feedhistory.Document
	next string // the URL of the next page; "" after the last
}

// walk yields page after page, and reports whether it came to an end.
func (o *outbox) walk(p *Probe, page *outboxPage, err error, yield func(*feedhistory.Document, error) bool) bool {
	for {
		if err != nil {
			return yield(nil, answer{err: err}.gap(cmp.Or(p.Place(), o.doc.URL), o.doc.URL))
		}
		p.SetPlace(page.next)
		if !yield(page.doc, nil) {
			return false
		}
		var gap *feedhistory.Gap
		switch {
		case page.next == "" || o.task.refill && o.task.overlaps(page.doc.Entries):
		case !o.owns(page.next):
			gap = newGap(page.next, page.doc.URL, feedhistory.ReasonForeign, errors.New("the next page of the account's posts is at another host"))
		case o.seen[page.next]:
			gap = repeating(page.next, feedhistory.ReasonLoop)
		case o.barren >= chain.MostBarren:
			gap = repeating(page.next, feedhistory.ReasonBarren)
		default:
			o.seen[page.next] = true
			page, err = o.page(page.next)
			continue
		}
		p.SetPlace("")
		return gap == nil || yield(nil, gap)
	}
}

// first returns the first page of the outbox named by the account's page.
func (o *outbox) first() (*outboxPage, error) {
	home, _ := o.doc.Links.Rel("alternate")
	account, at, err := o.load(home.Href)
	if err != nil {
		return nil, err
	}
	address := account.ref("outbox")
	if account["inbox"] == nil || !o.owns(address) {
		return nil, &feedhistory.ParseError{URL: at, Reason: feedhistory.ReasonNotFeed, Err: errors.New("this is not the description of an account with an outbox")}
	}
	return o.page(address)
}

// page returns a page. An outbox without posts links to its first page.
func (o *outbox) page(address string) (*outboxPage, error) {
	page, at, err := o.load(address)
	if err != nil {
		return nil, err
	}
	if first := page.ref("first"); page["orderedItems"] == nil && o.owns(first) {
		if page, at, err = o.load(first); err != nil {
			return nil, err
		}
	}
	head := feedhistory.Document{URL: at, Format: feedhistory.FormatAtom, Response: feedhistory.Response{Requested: address, Received: time.Now()}}
	doc, items, read := head, page.objects("orderedItems"), &outboxPage{next: page.ref("next")}
	if read.doc = &doc; len(items) == 0 && read.next == page.text("id") { // some servers end in an empty page that names itself
		read.next = ""
	}
	o.barren++
	for _, activity := range items {
		if id := activity.text("id"); !o.seen[id] {
			o.seen[id], o.barren = true, 0
		}
		if e, err := o.draft(activity).Undated(); err == nil && e.ID != "" {
			e.Head = &head
			read.doc.Entries = append(read.doc.Entries, e)
		}
	}
	return read, nil
}

// owns reports whether an address is on the feed's host.
func (o *outbox) owns(address string) bool {
	return feedhistory.HostOf(address) == feedhistory.HostOf(o.doc.URL)
}

// load requests an object of ActivityStreams.
func (o *outbox) load(address string) (object, string, error) {
	text, resp, err := settings.Read(o.ctx, o.c, address, http.Header{"Accept": {"application/activity+json"}})
	if err != nil {
		return nil, "", err
	}
	at, found := resp.Request.URL.String(), object{}
	if err := json.Unmarshal(text, &found); err != nil {
		return nil, at, &feedhistory.ParseError{URL: at, Reason: feedhistory.ReasonNotFeed, Err: err}
	}
	return found, at, nil
}

// draft returns the post an activity creates or updates, as the feed would have it; one
// without an id if there is none. The feed's ids are the addresses of the posts' pages, or
// those of ActivityPub.
func (o *outbox) draft(activity object) compose.Draft {
	post, kind := activity.object("object"), activity.text("type")
	author, reply, id := cmp.Or(post.ref("attributedTo"), activity.ref("actor")), post.ref("inReplyTo"), post.text("id")
	page := cmp.Or(post.ref("url"), id)
	switch own, _ := o.doc.Entries[0].Links.Rel("alternate"); {
	case kind != "Create" && kind != "Update", reply != "" && !strings.HasPrefix(reply, author+"/"), !o.owns(id), !o.owns(page):
		return compose.Draft{}
	case own.Href == o.doc.Entries[0].ID:
		id = page
	}
	published, _ := time.Parse(time.RFC3339Nano, cmp.Or(post.text("published"), activity.text("published")))
	updated, _ := time.Parse(time.RFC3339Nano, post.text("updated"))
	d := compose.Draft{
		ID: id, Published: published, Updated: cmp.Or(updated, published), Title: feedhistory.Text{Type: "text", Body: post.text("name")},
		Summary: feedhistory.Text{Type: "html", Body: post.text("summary")}, Content: feedhistory.Text{Type: "html", Body: post.text("content")},
		Links: feedhistory.Links{{Rel: "alternate", Href: page}}, Extensions: []string{compose.KeptBy("activitypub")},
	}
	for _, file := range post.objects("attachment") {
		if href := file.ref("url"); iri.IsHTTP(href) {
			d.Links = append(d.Links, feedhistory.Link{Rel: "enclosure", Href: href, Type: file.text("mediaType"), Title: file.text("name")})
		}
	}
	for _, tag := range post.objects("tag") {
		if name := strings.TrimPrefix(tag.text("name"), "#"); name != "" && tag.text("type") == "Hashtag" {
			d.Categories = append(d.Categories, feedhistory.Category{Term: name})
		}
	}
	return d
}

// An object is one of ActivityStreams, as JSON has it: a member may have one value or
// several, and an object may be only its URL.
type object map[string]any

func (o object) text(name string) string {
	s, _ := o[name].(string)
	return s
}

// objects returns the objects of a member.
func (o object) objects(name string) (all []object) {
	values, ok := o[name].([]any)
	if !ok {
		values = []any{o[name]}
	}
	for _, value := range values {
		switch value := value.(type) {
		case string:
			all = append(all, object{"id": value})
		case map[string]any:
			all = append(all, value)
		}
	}
	return all
}

// object returns the first object of a member; an empty one if there is none.
func (o object) object(name string) object { return append(o.objects(name), object{})[0] }

// ref returns the URL of a member's first object or link.
func (o object) ref(name string) string {
	return cmp.Or(o.object(name).text("id"), o.object(name).text("href"))
}
