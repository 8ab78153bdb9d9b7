package greader

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/feedhistory/feedhistory/cmd/internal/memory"
	"github.com/feedhistory/feedhistory/cmd/internal/readerapi"
)

// atOnce is the number of items in an answer.
const atOnce = 100

const base = "reader/api/0/"

type subscription struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	URL   string `json:"url"`
}

// feed returns the feed's URL; "" if the server does not have it.
func (s *subscription) feed() string {
	if memory.IsWeb(s.URL) {
		return s.URL
	}
	if url := strings.TrimPrefix(s.ID, "feed/"); memory.IsWeb(url) {
		return url
	}
	return ""
}

// Read yields the entries of all feeds, feed by feed. It logs in if the server's header has a
// user and a password; a bearer token is sent as it is.
func Read(ctx context.Context, s *readerapi.Server, wanted func(feed string) bool, mark string) iter.Seq2[memory.Found, error] {
	return func(yield func(memory.Found, error) bool) {
		if err := login(ctx, s); err != nil {
			yield(memory.Found{}, err)
			return
		}
		var answer struct{ Subscriptions []subscription }
		if err := s.Get(ctx, base+"subscription/list", url.Values{"output": {"json"}}, &answer); err != nil {
			yield(memory.Found{}, err)
			return
		}
		from, token, _ := strings.Cut(mark, " ")
		reached := mark == ""
		for _, sub := range answer.Subscriptions {
			if sub.ID == from {
				reached = true
			} else {
				token = ""
			}
			if !reached || !wanted(sub.feed()) {
				continue
			}
			if sub.feed() == "" {
				if !yield(memory.Found{Damage: fmt.Errorf("subscription %q: it has no address", sub.ID)}, nil) {
					return
				}
				continue
			}
			r := &stream{ctx: ctx, server: s, sub: sub, yield: yield}
			if !yield(memory.Found{Feed: sub.feed(), Title: sub.Title}, nil) || !r.read(token) {
				return
			}
		}
	}
}

// login exchanges a user and a password for a token.
func login(ctx context.Context, s *readerapi.Server) error {
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

// A stream is one feed of the server.
type stream struct {
	ctx    context.Context
	server *readerapi.Server
	sub    subscription
	yield  func(memory.Found, error) bool

	numbers bool // the server gives items only by their numbers
}

// read yields the items from a continuation on, and reports whether to go on with the next feed.
func (r *stream) read(token string) bool {
	seen := map[string]bool{}
	for {
		items, next, err := r.page(token)
		if err != nil {
			return r.yield(memory.Found{}, err) && false
		}
		for i := range items {
			found := memory.Found{Feed: r.sub.feed(), Title: r.sub.Title, Entry: items[i].Kept()}
			if found.Entry == nil {
				found.Damage = fmt.Errorf("%s, item %q: it has neither an id nor a link nor a title", r.sub.feed(), items[i].ID)
			}
			if i == len(items)-1 && next != "" {
				found.Mark = r.sub.ID + " " + next
			}
			if !r.yield(found, nil) {
				return false
			}
		}
		if next == "" {
			return true
		}
		if seen[next] {
			return r.yield(memory.Found{}, fmt.Errorf("%s: the reader repeats a part of %s", r.server.URL, r.sub.feed())) && false
		}
		seen[next], token = true, next
	}
}

// page returns the items after a continuation, and the next continuation. Miniflux gives
// the items only by their numbers.
func (r *stream) page(token string) ([]Item, string, error) {
	query := url.Values{"output": {"json"}, "n": {strconv.Itoa(atOnce)}, "r": {"o"}}
	if token != "" {
		query.Set("c", token)
	}
	if r.numbers {
		return r.numbered(query)
	}
	var answer struct {
		Items        []Item
		Continuation string
	}
	kind, id, _ := strings.Cut(r.sub.ID, "/")
	err := r.server.Get(r.ctx, base+"stream/contents/"+kind+"/"+url.PathEscape(id), query, &answer)
	failed, refused := errors.AsType[*readerapi.Error](err)
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
func (r *stream) numbered(query url.Values) ([]Item, string, error) {
	query.Set("s", r.sub.ID)
	var list struct {
		Refs []struct {
			ID string `json:"id"`
		} `json:"itemRefs"`
		Continuation string `json:"continuation"`
	}
	if err := r.server.Get(r.ctx, base+"stream/items/ids", query, &list); err != nil || len(list.Refs) == 0 {
		return nil, "", err
	}
	var token string // a POST needs one, in some readers
	if err := r.server.Get(r.ctx, base+"token", nil, &token); err != nil {
		return nil, "", err
	}
	form := url.Values{"T": {strings.TrimSpace(token)}}
	for _, ref := range list.Refs {
		form.Add("i", ref.ID)
	}
	var answer struct{ Items []Item }
	_, err := r.server.Call(r.ctx, http.MethodPost, base+"stream/items/contents", url.Values{"output": {"json"}}, form, &answer)
	return answer.Items, list.Continuation, err
}
