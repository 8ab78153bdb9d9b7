package readers

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/mirror"
)

// A GoogleReaderItem is an entry in the form of Google Reader, with the fields Inoreader, Feedly,
// FreshRSS and Miniflux add to it.
type GoogleReaderItem struct {
	ID        string             `json:"id"`
	OriginID  string             `json:"originId,omitempty"`      // the publisher's id, in Feedly
	GUID      string             `json:"guid,omitempty"`          // the same, in FreshRSS
	Crawled   string             `json:"crawlTimeMsec,omitempty"` // when the server got it
	Stamp     string             `json:"timestampUsec,omitempty"` // the same
	Title     string             `json:"title"`
	Published Number             `json:"published"`
	Updated   Number             `json:"updated,omitempty"`
	Author    string             `json:"author,omitempty"`
	Unread    *bool              `json:"unread,omitempty"` // in Feedly
	States    any                `json:"categories"`       // states, folders and tags: a list of texts or, in Feedly, of objects
	Alternate []GoogleReaderLink `json:"alternate"`
	Canonical []GoogleReaderLink `json:"canonical,omitempty"`
	Enclosure []GoogleReaderLink `json:"enclosure,omitempty"`
	Summary   GoogleReaderText   `json:"summary,omitzero"`
	Content   GoogleReaderText   `json:"content,omitzero"`
	Origin    GoogleReaderOrigin `json:"origin"`
}

// A GoogleReaderLink is a link of an item.
type GoogleReaderLink struct {
	Href   string      `json:"href"`
	URL    string      `json:"url,omitempty"` // in Miniflux
	Type   string      `json:"type,omitempty"`
	Length json.Number `json:"length,omitempty"`
}

// A GoogleReaderOrigin is the feed of an item.
type GoogleReaderOrigin struct {
	StreamID string `json:"streamId"`
	FeedURL  string `json:"feedUrl"`
	Title    string `json:"title"`
	HTMLURL  string `json:"htmlUrl"`
}

// A Number is a number, which may be in a string.
type Number int64

// UnmarshalJSON reads a number, with or without quotation marks. Others are zero.
func (n *Number) UnmarshalJSON(data []byte) error {
	var value json.Number
	if json.Unmarshal([]byte(strings.Trim(string(data), `"`)), &value) != nil {
		return nil
	}
	whole, err := value.Int64()
	if err != nil {
		fraction, _ := value.Float64()
		whole = int64(fraction)
	}
	*n = Number(whole)
	return nil
}

// A GoogleReaderText is text, which is an object or a string.
type GoogleReaderText struct {
	Text string `json:"content"`
}

// UnmarshalJSON reads {"content": "…"} or a string.
func (c *GoogleReaderText) UnmarshalJSON(data []byte) error {
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

// streamFeed returns the URL of a feed, which the id of its stream may have; "" if neither is one.
func streamFeed(url, stream string) string {
	for _, address := range []string{url, strings.TrimPrefix(stream, "feed/")} {
		if isWeb(address) {
			return address
		}
	}
	return ""
}

// marks returns the item's marks: a state is a category as in user/-/state/com.google/read or,
// in Feedly, the tag global.read; a label is one as in user/-/label/News.
func (i *GoogleReaderItem) marks() mirror.Marks {
	read, starred := i.Unread != nil && !*i.Unread, false
	var labels []string
	all, _ := i.States.([]any)
	for _, one := range all {
		if tag, ok := one.(map[string]any); ok {
			one = tag["id"]
		}
		name, _ := one.(string)
		_, label, isLabel := strings.Cut(name, "/label/")
		_, state, _ := strings.Cut(strings.Replace(name, "/tag/global.", greaderStates, 1), greaderStates)
		switch {
		case isLabel && strings.HasPrefix(name, "user/") && label != "" && !slices.Contains(labels, label):
			labels = append(labels, label)
		case state == "read":
			read = true
		case state == "starred", state == "saved":
			starred = true
		}
	}
	return marks(read, starred, time.Time{}, labels...)
}

// greaderStates precedes the name of a state.
const greaderStates = "/state/com.google/"

// Draft returns the item as an entry.
func (i *GoogleReaderItem) Draft() compose.Draft {
	href := ""
	for _, l := range append(i.Alternate, i.Canonical...) {
		if href == "" && isWeb(l.Href) {
			href = l.Href
		}
	}
	d := compose.Draft{
		ID: cmp.Or(strings.TrimSpace(i.OriginID), publisherID(i.GUID)), Title: titleText(i.Title), Authors: authors(i.Author), Links: alternate(href),
		Content:   htmlText(cmp.Or(i.Content.Text, i.Summary.Text)),
		Published: unixTime(int64(i.Published)), Updated: unixTime(int64(i.Updated)),
	}
	if d.Updated.Before(d.Published) {
		d.Updated = d.Published
	}
	for _, l := range i.Enclosure {
		d.Links = enclosure(d.Links, cmp.Or(l.Href, l.URL), l.Type, l.Length.String())
	}
	return d
}

// found returns the item as an entry of a feed. The item is named so if it cannot be read.
func (i *GoogleReaderItem) found(feed, title, name string) Item {
	found := Item{Feed: feed, Title: title}
	k := &mirror.KeptEntry{Draft: i.Draft()}
	if link, _ := k.Links.Rel("alternate"); k.ID+link.Href+i.Title == "" {
		found.Damage = fmt.Errorf("%s: %w", name, errNameless)
		return found
	}
	k.Marks = i.marks()
	found.Entry = k
	return found
}

const greaderBase = "reader/api/0/"

// A GoogleReaderFeed is a subscription.
type GoogleReaderFeed struct {
	ID         string               `json:"id"`
	Title      string               `json:"title"`
	URL        string               `json:"url"`
	Site       string               `json:"htmlUrl"`
	Categories []GoogleReaderFolder `json:"categories"`
}

// A GoogleReaderFolder is a folder of subscriptions.
type GoogleReaderFolder struct {
	ID    string `json:"id"`
	Label string `json:"label"`
}

// readFreshRSS does the same as readGreader for an address of FreshRSS itself.
func readFreshRSS(ctx context.Context, s *Source, server *Server, mark string, yield func(Item) error) error {
	if !strings.Contains(server.URL, "greader.php") {
		server.URL = strings.TrimSuffix(server.URL, "/") + "/api/greader.php"
	}
	return readGreader(ctx, s, server, mark, yield)
}

// readGreader reads the entries of all wanted feeds by the API of Google Reader, feed by
// feed. It logs in if the server's header has a user and a password; a bearer token is sent
// as it is.
func readGreader(ctx context.Context, s *Source, server *Server, mark string, yield func(Item) error) error {
	if err := greaderLogin(ctx, server); err != nil {
		return err
	}
	var answer struct{ Subscriptions []GoogleReaderFeed }
	if err := server.Get(ctx, greaderBase+"subscription/list", url.Values{"output": {"json"}}, &answer); err != nil {
		return err
	}
	streams := map[string]*greaderStream{}
	var feeds []remoteFeed[string]
	for _, sub := range answer.Subscriptions {
		found := Item{Feed: streamFeed(sub.URL, sub.ID), Title: sub.Title}
		streams[sub.ID] = &greaderStream{ctx: ctx, server: server, id: sub.ID, feed: found.Feed}
		if found.Feed == "" {
			found.Damage = fmt.Errorf("subscription %q: it has no address", sub.ID)
		}
		for _, c := range sub.Categories {
			found.Folders = append(found.Folders, folder(c.Label, "Uncategorized")...)
		}
		feeds = append(feeds, remoteFeed[string]{id: sub.ID, Item: found})
	}
	return readPages(s, mark, feeds, func(feed, token string) ([]Item, string, error) { return streams[feed].read(token) }, yield)
}

// greaderLogin exchanges a user and a password for a token.
func greaderLogin(ctx context.Context, s *Server) error {
	user, password, ok := s.User()
	if !ok {
		return nil
	}
	bare := *s
	bare.Header = s.Header.Clone()
	bare.Header.Del("Authorization")
	var answer string
	form := url.Values{"Email": {user}, "Passwd": {password}, "service": {"reader"}, "accountType": {"HOSTED_OR_GOOGLE"}, "client": {"feedhistory"}}
	if _, err := bare.Call(ctx, http.MethodPost, "accounts/ClientLogin", nil, form, &answer); err != nil {
		return err
	}
	for line := range strings.Lines(answer) {
		if token, ok := strings.CutPrefix(strings.TrimSpace(line), "Auth="); ok && token != "" {
			s.Header = bare.Header
			s.Header.Set("Authorization", "GoogleLogin auth="+token)
			return nil
		}
	}
	return fmt.Errorf("%s: the login succeeded, but the answer has no token", s.URL)
}

// A greaderStream is one feed of the server.
type greaderStream struct {
	ctx      context.Context
	server   *Server
	id, feed string
	numbers  bool // the server gives items only by their numbers
}

// read returns the items after a continuation as entries.
func (r *greaderStream) read(token string) (found []Item, next string, err error) {
	items, next, err := r.page(token)
	for i := range items {
		found = append(found, items[i].found(r.feed, "", fmt.Sprintf("%s, item %q", r.feed, items[i].ID)))
	}
	if len(found) > 0 {
		found[len(found)-1].Mark = next
	}
	return found, next, err
}

// page returns the items after a continuation, and the next continuation. Miniflux gives
// the items only by their numbers.
func (r *greaderStream) page(token string) ([]GoogleReaderItem, string, error) {
	query := url.Values{"output": {"json"}, "n": {strconv.Itoa(atOnce)}, "r": {"o"}}
	if token != "" {
		query.Set("c", token)
	}
	if r.numbers {
		return r.numbered(query)
	}
	var answer struct {
		Items        []GoogleReaderItem
		Continuation string
	}
	kind, id, _ := strings.Cut(r.id, "/")
	err := r.server.Get(r.ctx, greaderBase+"stream/contents/"+kind+"/"+url.PathEscape(id), query, &answer)
	failed, refused := errors.AsType[*ServerError](err)
	_, other := errors.AsType[*json.UnmarshalTypeError](err)
	if token != "" || !other && (!refused || failed.Status/100 != 4 || failed.IsLogin()) {
		return answer.Items, answer.Continuation, err
	}
	items, next, err2 := r.numbered(query)
	if err2 != nil {
		return nil, "", errors.Join(err, err2)
	}
	r.numbers = true
	return items, next, nil
}

// numbered returns a page of items by way of their numbers.
func (r *greaderStream) numbered(query url.Values) ([]GoogleReaderItem, string, error) {
	query.Set("s", r.id)
	var list struct {
		Refs []struct {
			ID string `json:"id"`
		} `json:"itemRefs"`
		Continuation string `json:"continuation"`
	}
	if err := r.server.Get(r.ctx, greaderBase+"stream/items/ids", query, &list); err != nil || len(list.Refs) == 0 {
		return nil, "", err
	}
	var token string // a POST needs one, in some readers
	if err := r.server.Get(r.ctx, greaderBase+"token", nil, &token); err != nil {
		return nil, "", err
	}
	form := url.Values{"T": {strings.TrimSpace(token)}}
	for _, ref := range list.Refs {
		form.Add("i", ref.ID)
	}
	var answer struct{ Items []GoogleReaderItem }
	_, err := r.server.Call(r.ctx, http.MethodPost, greaderBase+"stream/items/contents", url.Values{"output": {"json"}}, form, &answer)
	return answer.Items, list.Continuation, err
}

// isTakeout reports whether the beginning of a file is that of a JSON export of Google
// Reader, Inoreader or Feedly: an object with a list of items, or a list of items with their
// origins.
func isTakeout(start []byte) bool {
	decoder := json.NewDecoder(bytes.NewReader(start))
	token, err := decoder.Token()
	switch {
	case err != nil:
		return false
	case token == json.Delim('['):
		if token, err = decoder.Token(); err != nil || token != json.Delim('{') {
			return false
		}
		return hasMember(decoder, "origin", "alternate", "originId")
	}
	return token == json.Delim('{') && hasMember(decoder, "items")
}

// hasMember reports whether the decoder's current object has one of the members, with an
// array or an object or a string.
func hasMember(decoder *json.Decoder, names ...string) bool {
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return false
		}
		if text, ok := name.(string); ok && slices.Contains(names, text) {
			return true
		}
		var other json.RawMessage
		if decoder.Decode(&other) != nil {
			return false
		}
	}
	return false
}

// A takeout is the JSON export of a user, being read.
type takeout struct {
	ctx     context.Context
	decoder *json.Decoder
	feed    string // of items without an origin; "" if there is none
	n       int    // the number of items so far
	after   int    // the number of items to skip
	yield   func(Item) error
}

// readTakeout takes the items of a file in its order; of a zip, those of all takeouts in it.
func readTakeout(ctx context.Context, s *Source, mark string, yield func(Item) error) error {
	after, _ := strconv.Atoi(mark)
	t := &takeout{ctx: ctx, feed: s.feed(), after: after, yield: yield}
	if z, err := zip.OpenReader(s.Name); err == nil {
		defer z.Close()
		for _, f := range z.File {
			if !isTakeout(zipped(f)) {
				continue
			}
			if err := t.read(s.Name+", "+f.Name, f.Open); err != nil {
				return err
			}
		}
		return nil
	}
	return t.read(s.Name, func() (io.ReadCloser, error) { return os.Open(s.Name) })
}

// zipped returns the beginning of a file in a zip; nothing if it cannot be read.
func zipped(f *zip.File) []byte {
	r, err := f.Open()
	if err != nil {
		return nil
	}
	defer r.Close()
	text, _ := io.ReadAll(io.LimitReader(r, revealing)) // damage shows when all of it is read
	return text
}

// read takes the items of a file.
func (t *takeout) read(file string, open func() (io.ReadCloser, error)) error {
	f, err := open()
	if err != nil {
		return err
	}
	defer f.Close()
	t.decoder = json.NewDecoder(bufio.NewReader(f))
	err = t.values()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("the file is cut short")
	}
	if err != nil {
		err = fmt.Errorf("%s: after item %d: %w", file, t.n, err)
	}
	return err
}

// values reads the values of the file: lists of items, or objects with a list of them in the
// member items.
func (t *takeout) values() error {
	for inObject := false; ; {
		token, err := t.decoder.Token()
		if err == io.EOF && !inObject {
			return nil
		}
		if err != nil {
			return err
		}
		_, isName := token.(string)
		switch {
		case token == json.Delim('{'), token == json.Delim('}'):
			inObject = !inObject
		case token == json.Delim('['):
			err = t.items()
		case inObject && token == "items":
			if token, err = t.decoder.Token(); err == nil && token == json.Delim('[') {
				err = t.items()
			} else {
				err = errors.Join(errors.New("the items are not a list"), err)
			}
		case inObject && isName:
			err = t.decoder.Decode(new(json.RawMessage))
		default:
			err = errors.New("this is not a takeout")
		}
		if err != nil {
			return err
		}
	}
}

// items reads the rest of a list of items.
func (t *takeout) items() error {
	for t.decoder.More() {
		if err := t.ctx.Err(); err != nil {
			return err
		}
		var raw json.RawMessage
		if err := t.decoder.Decode(&raw); err != nil {
			return err
		}
		if t.n++; t.n <= t.after {
			continue
		}
		if err := t.yield(t.found(raw)); err != nil {
			return err
		}
	}
	_, err := t.decoder.Token()
	return err
}

func (t *takeout) found(raw []byte) (found Item) {
	var item GoogleReaderItem
	name := fmt.Sprint("item ", t.n)
	if err := json.Unmarshal(raw, &item); err != nil {
		found.Damage = fmt.Errorf("%s: %w", name, err)
	} else if found = item.found(cmp.Or(streamFeed(item.Origin.FeedURL, item.Origin.StreamID), t.feed), item.Origin.Title, name); found.Entry != nil && found.Feed == "" {
		found.Damage, found.Entry = fmt.Errorf("%s: it names no feed", name), nil
	}
	found.Mark = strconv.Itoa(t.n)
	return found
}
