package feedhistory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/feedxml"
	"github.com/feedhistory/feedhistory/internal/fetch"
	"github.com/feedhistory/feedhistory/internal/iri"
	"github.com/feedhistory/feedhistory/internal/markup"
)

// ActivityPub: an account's outbox is a paged feed. A collection of activities is written as
// an Atom document, which has a place for all they say of posts, and that is read. So counts
// of likes and replies, which change daily, are not part of an entry.

// ErrSigned is found in the FetchError of an account whose server answers only requests
// signed by servers of the fediverse ("authorized fetch"). A Client signs none.
var ErrSigned = errors.New("the server answers only other servers of the fediverse, which sign their requests; this program does not")

const (
	activityType   = "application/activity+json"
	activityAccept = activityType + `, application/ld+json; profile="https://www.w3.org/ns/activitystreams"`
)

// acceptFor returns the Accept header for a document. Some servers serve a web page instead
// of an outbox to those who do not ask for activities. Others serve those instead of a feed to
// those who do, so only an outbox is asked for them. Software calls it so in its address.
func acceptFor(url string) string {
	if isOutbox(url) {
		return activityAccept + ", " + accept
	}
	return accept
}

func isOutbox(address string) bool {
	path, _, _ := strings.Cut(address, "?")
	return slices.Contains(strings.Split(path, "/"), "outbox")
}

// withSigned tells why the server of an account refuses a request.
func withSigned(err error) error {
	if e, ok := errors.AsType[*FetchError](err); ok && e.Err == nil && isStatus(err, http.StatusUnauthorized, http.StatusForbidden) {
		e.Err = ErrSigned
	}
	return err
}

var errAccount = errors.New("the description of an account, not its posts")

// readAccount completes the error of a document that is no feed but describes an account,
// or is a web page about one. An actor names its outbox; a WebFinger answer (RFC 7033), or a
// page without feeds, only the actor.
func (e *ParseError) readAccount(text, contentType string, longest int) {
	if errors.Is(e, ErrWebPage) {
		if len(e.Feeds) == 0 {
			e.actor = markup.ActorLink(text, e.URL, contentType, longest)
		}
		return
	}
	var about object
	if !isJSON(text) || json.Unmarshal([]byte(text), &about) != nil {
		return
	}
	outbox := about.object("outbox").ref()
	switch {
	case about["inbox"] != nil && HostOf(outbox) == HostOf(e.URL) && len(outbox) <= longest:
		title := markup.ClipTitle(cmp.Or(about.text("name"), about.text("preferredUsername")))
		e.Feeds = Links{{Rel: relAlternate, Href: outbox, Type: activityType, Title: title}}
	case about.text("subject") != "":
		for _, link := range about.objects("links") {
			kind, profile, _ := strings.Cut(link.text("type"), ";")
			if link.text("rel") == relSelf && (kind == activityType || strings.Contains(profile, "activitystreams")) && len(link.ref()) <= longest {
				e.actor = link.ref()
			}
		}
	}
	if e.actor != "" || e.Feeds != nil {
		e.Err = errAccount
	}
}

// lookUp requests the actor a document names, and returns the document's error with the
// actor's outbox. If the actor's server refuses, that is the error.
func (c *Client) lookUp(ctx context.Context, of *ParseError) error {
	resp, err := c.do(ctx, fetch.Request{URL: iri.ForRequest(of.actor), Accept: activityAccept})
	if err != nil {
		if err = withSigned(err); errors.Is(of, errAccount) || errors.Is(err, ErrSigned) {
			return err
		}
		return of // a web page, which may name anything
	}
	defer resp.Body.Close()
	found := &ParseError{URL: resp.URL}
	if text, _, err := resp.Text(nil); err == nil {
		found.readAccount(text, "", fetch.MaxURL)
	}
	of.Feeds = found.Feeds
	return of
}

// An object is one of ActivityStreams, as JSON has it: any member may have one value or
// several, and an object may be only its id.
type object map[string]any

func (o object) text(name string) string {
	s, _ := o[name].(string)
	return trim(s)
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

// object returns the first object of a member; nil if there is none.
func (o object) object(name string) object {
	if all := o.objects(name); len(all) > 0 {
		return all[0]
	}
	return nil
}

// ref returns the URL of an object or link.
func (o object) ref() string { return cmp.Or(o.text("id"), o.text("href")) }

func (o object) is(types ...string) bool {
	return slices.ContainsFunc(o.objects("type"), func(t object) bool { return slices.Contains(types, t.text("id")) })
}

// isCollection reports whether a type is one of a collection, or of a page of one.
func isCollection(kind string) bool {
	return object{"type": kind}.is("OrderedCollection", "OrderedCollectionPage", "Collection", "CollectionPage")
}

// parseActivities reads a collection of activities.
func (p Parser) parseActivities(text, base string) (*Document, error) {
	var collection object
	if err := json.Unmarshal([]byte(text), &collection); err != nil {
		return nil, &ParseError{URL: base, Reason: ReasonMalformed, Clause: clauseJSON, Err: err}
	}
	self := cmp.Or(base, collection.text("id"))
	w := outboxWriter{self: self, host: HostOf(self)}
	w.document(collection)
	p.Header = p.Header.Clone()
	p.Header.Del("Content-Type") // the charset is JSON's
	doc, err := p.parseXML(w.String(), base)
	if doc == nil {
		return nil, err
	}
	message := "this is read as an Atom feed, but it is an ActivityPub collection"
	if total, ok := collection["totalItems"].(float64); ok {
		message += fmt.Sprintf("; it says that it has %.0f items, private ones perhaps included", total)
	}
	doc.Notes = append([]Note{{Code: "activitypub", Message: message, Line: 1, Column: 1}}, doc.Notes...)
	if w.foreign > 0 {
		doc.Notes = append(doc.Notes, Note{Code: "entry-skipped", Message: fmt.Sprintf("%d entries are left out: their ids belong to another host than %s", w.foreign, w.host)})
	}
	return doc, err
}

// An outboxWriter writes activities as Atom.
type outboxWriter struct {
	feedxml.Markup
	self    string // the document's URL
	host    string // the only one whose ids count: nobody speaks for another host
	foreign int    // entries without such an id
}

func (w *outboxWriter) owns(id string) bool { return iri.IsHTTP(id) && HostOf(id) == w.host }

// document writes a collection, or a page of one. Some servers embed the first page, some
// call the collection a page, and some end in an empty page that leads to itself.
func (w *outboxWriter) document(c object) {
	page, first := c, c.object("first")
	if first.is("OrderedCollectionPage", "CollectionPage") {
		page, first = first, nil
	}
	next := page.object("next").ref()
	items := slices.Concat(page.objects("orderedItems"), page.objects("items"))
	if next == page.text("id") {
		next = ""
	}
	w.Open("feed", "xmlns", feedxml.Atom, "xmlns:at", feedxml.Tombstones)
	w.WriteString(">\n")
	if id := cmp.Or(page.object("partOf").ref(), c.text("id")); w.owns(id) {
		w.Element("id", id)
	}
	w.head(items)
	w.Link("link", feedxml.Link{Rel: relSelf, Href: w.self})
	w.history(relFirst, first.ref())
	w.history(relNext, next)
	if next == "" && first == nil {
		w.Empty("link", "rel", relLast, "href", iri.Writable(w.self)) // so it is a page, too
	}
	for _, item := range items {
		w.activity(item)
	}
	w.WriteString("</feed>\n")
}

// head writes the title and the author, as far as pages name their actor.
func (w *outboxWriter) head(items []object) {
	actor, updated := "", time.Time{}
	for _, item := range items {
		o := item.object("object")
		if at := readTime(o.text("updated"), o.text("published"), item.text("published")); at.After(updated) {
			updated = at // of the newest
		}
		if by := item.object("actor").ref(); actor == "" && w.owns(by) {
			actor = by
		}
	}
	if !updated.IsZero() {
		w.Element("updated", updated.Format(time.RFC3339Nano))
	}
	u, err := url.Parse(actor)
	if err != nil || actor == "" {
		w.Element("title", "")
		return
	}
	name := strings.TrimPrefix(u.Path[strings.LastIndexByte(u.Path, '/')+1:], "@")
	if strings.Trim(name, "0123456789") == "" { // a number, or nothing
		name = ""
	}
	if name != "" {
		w.Element("title", "@"+name+"@"+w.host)
	} else {
		w.Element("title", actor)
	}
	w.Person("author", feedxml.Person{Name: name, URI: actor})
	w.Link("link", feedxml.Link{Rel: relAlternate, Href: actor})
}

// history writes a link to another page. One that leads to another host is lost, because
// nobody speaks for that host.
func (w *outboxWriter) history(rel, href string) {
	switch {
	case href == "":
	case w.owns(href):
		w.Link("link", feedxml.Link{Rel: rel, Href: href})
	default:
		w.Empty("link", "rel", relNext)
	}
}

// activity writes the entry, or the tombstone, of an activity. Others than these, such as
// Like and Follow, are no posts. An object without an activity has been created.
func (w *outboxWriter) activity(a object) {
	o := a.object("object")
	switch {
	case a.is("Delete", "Undo"):
		w.tombstone(o, cmp.Or(a.text("published"), a.text("updated")))
	case a.is("Announce"):
		w.entry(a, o, a.text("id"))
	case a.is("Create", "Update"):
		w.post(a, o)
	case o == nil:
		w.post(nil, a)
	}
}

func (w *outboxWriter) post(activity, o object) {
	if o.is("Tombstone") {
		w.tombstone(o, activity.text("published"))
		return
	}
	w.entry(activity, o, o.text("id"))
}

func (w *outboxWriter) tombstone(o object, when string) {
	if id := o.text("id"); w.owns(id) {
		w.Empty("at:deleted-entry", "ref", id, "when", cmp.Or(o.text("deleted"), when))
	}
}

// entry writes an entry of an object with the given id. An activity may embed the activity
// it announces.
func (w *outboxWriter) entry(activity, o object, id string) {
	if !w.owns(id) {
		w.foreign++
		return
	}
	for range 3 {
		if inner := o.object("object"); inner != nil {
			o = inner
		}
	}
	i := feedxml.Item{ID: id, Published: readTime(o.text("published"), activity.text("published")), Updated: readTime(o.text("updated"), activity.text("updated"))}
	if activity.is("Announce") {
		i.Published, i.Updated = readTime(activity.text("published")), readTime(activity.text("updated"))
	} else if activity.is("Update") && i.Updated.IsZero() {
		i.Updated = readTime(activity.text("published"))
	}
	if i.Updated.IsZero() {
		i.Updated = i.Published
	}
	i.Title = feedxml.Construct{Type: textPlain, Body: o.text("name")}
	i.Summary = feedxml.Draftable(feedxml.Construct{Type: textHTML, Body: o.text("summary")})
	i.Content = content(o)
	i.Links = links(o)
	if sensitive, _ := o["sensitive"].(bool); sensitive {
		i.Categories = append(i.Categories, feedxml.Category{Scheme: "https://www.w3.org/ns/activitystreams#", Term: "sensitive"})
	}
	for _, tag := range o.objects("tag") {
		if name := strings.TrimPrefix(tag.text("name"), "#"); tag.is("Hashtag") && name != "" {
			i.Categories = append(i.Categories, feedxml.Category{Term: name})
		}
	}
	for _, reply := range o.objects("inReplyTo") {
		if ref := reply.ref(); ref != "" {
			var x feedxml.Markup
			x.Empty("thr:in-reply-to", "xmlns:thr", "http://purl.org/syndication/thread/1.0", "ref", ref, "href", iri.Writable(ref))
			i.Extensions = append(i.Extensions, x.String())
		}
	}
	if text, err := i.Atom(); err == nil {
		w.WriteString(text + "\n")
	} else {
		w.foreign++
	}
}

// content returns an object's content: HTML, unless it says otherwise. If it is there in
// languages only, the first one counts.
func content(o object) feedxml.Construct {
	t := feedxml.Construct{Type: textHTML, Body: o.text("content")}
	languages, _ := o["contentMap"].(map[string]any)
	for _, language := range slices.Sorted(maps.Keys(languages)) {
		body := object(languages).text(language)
		if t.Body == "" || t.Body == body {
			t.Body, t.Lang = body, language
		}
	}
	if kind := o.text("mediaType"); kind != "" && kind != "text/html" {
		t.Type = textPlain
	}
	return feedxml.Draftable(t)
}

// links returns an object's links: its page, or itself, and its files.
func links(o object) (all []feedxml.Link) {
	var files []feedxml.Link
	page := ""
	add := func(l object, title string) {
		link := feedxml.Link{Rel: relEnclosure, Href: cmp.Or(l.text("href"), l.text("url"), l.text("id")), Type: l.text("mediaType"), Title: title}
		if size, ok := l["size"].(float64); ok && size > 0 {
			link.Length = fmt.Sprintf("%.0f", size)
		}
		kind, _, _ := strings.Cut(link.Type, "/")
		switch {
		case !iri.IsHTTP(link.Href):
		case slices.Contains([]string{"image", "audio", "video"}, kind):
			files = append(files, link)
		case page == "" && title == "" && (link.Type == "" || link.Type == "text/html"):
			page = link.Href
		}
	}
	for _, u := range o.objects("url") {
		add(u, "")
	}
	if page = cmp.Or(page, o.text("id")); iri.IsHTTP(page) {
		all = append(all, feedxml.Link{Rel: relAlternate, Href: page})
	}
	for _, file := range o.objects("attachment") {
		for _, u := range file.objects("url") {
			if u.text("mediaType") == "" {
				u["mediaType"] = file.text("mediaType")
			}
			add(u, file.text("name"))
		}
		if file["url"] == nil {
			add(file, file.text("name"))
		}
	}
	return append(all, files...)
}

// readTime returns the first readable time.
func readTime(texts ...string) time.Time {
	var r reading
	for _, text := range texts {
		if t, ok := r.date(text); ok {
			return t
		}
	}
	return time.Time{}
}
