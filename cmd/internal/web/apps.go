package web

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/cmd/internal/readers"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// Reading apps use the API of Google Reader, as FreshRSS has it. An app shows the login of a
// reader with each request, in a header no browser sends by itself.

// The limits of requests and answers.
const (
	usualItems  = 20       // entries in an answer, if an app does not say how many
	mostItems   = 5000     // entries in an answer, or named by a request
	mostTexts   = 16 << 20 // bytes of texts in an answer
	mostWalked  = 100_000  // entries to look at; a continuation leads on
	mostAppForm = 1 << 20  // bytes of a form
	mostNumbers = 50_000   // half the numbers of entries to remember, of some 300 bytes each
	atOnce      = 100      // entries to read with their marks at once
)

const (
	appPath     = "api/greader.php" // where apps look for FreshRSS
	appHeader   = "GoogleLogin auth="
	itemPrefix  = "tag:google.com,2005:reader/item/"
	labelPrefix = "user/-/label/"
	readingList = readers.GoogleReaderState + "reading-list"
	readState   = readers.GoogleReaderState + readers.Read
	starState   = readers.GoogleReaderState + "starred"
)

// appMarks are the marks of states.
var appMarks = map[string]string{readState: "read", starState: "starred"}

var (
	errUnknownApp = &problem{http.StatusUnauthorized, "The app must log in", "Make a login for it at “Feed readers” on this server's pages."}
	errAppLimited = &problem{http.StatusForbidden, "An app may only read, and mark entries as read or starred", "For everything else, use this server's pages."}
	errAppRequest = &problem{http.StatusBadRequest, "The request cannot be read", "A parameter is invalid, or there are too many."}
)

// isApp reports whether an address is one of the API, which asks for a login itself.
func isApp(r *http.Request) bool {
	return r.URL.Path == "/accounts/ClientLogin" || strings.HasPrefix(r.URL.Path, "/reader/")
}

// An appPage answers an app with a text, a document, or a value for JSON.
type appPage func(r *http.Request) (any, error)

// app answers an app with a login.
func (s *Server) app(h appPage) page {
	return func(w http.ResponseWriter, r *http.Request) error {
		if !strings.HasPrefix(r.Header.Get("Authorization"), appHeader) || !s.gate.isReader(r) || s.marker == nil {
			return errUnknownApp
		}
		if r.ParseForm() != nil || len(r.Form["i"]) > mostItems {
			return errAppRequest
		}
		return s.bounded(s.say(h))(w, r)
	}
}

func (s *Server) say(h appPage) page {
	return func(w http.ResponseWriter, r *http.Request) error {
		answer, err := h(r)
		if err != nil {
			return err
		}
		kind, text := "application/json", []byte(nil)
		switch a := answer.(type) {
		case string:
			kind, text = "text/plain", []byte(a)
		case *bytes.Buffer:
			kind, text = "application/atom+xml", a.Bytes()
		default:
			text, _ = json.Marshal(a) // none of the values can fail
		}
		w.Header().Set("Content-Type", kind+"; charset=utf-8")
		w.Header().Set("Cache-Control", "private, no-cache")
		w.Header().Set("Vary", "Authorization")
		return s.send(w, r, http.StatusOK, text)
	}
}

// logIn returns the credentials an app shows from then on.
func (s *Server) logIn(r *http.Request) (any, error) {
	name, password := r.PostFormValue("Email"), r.PostFormValue("Passwd")
	if !s.gate.knows(name, password) {
		return nil, errUnknownApp
	}
	shown := url.PathEscape(name) + "/" + password
	return "SID=" + shown + "\nLSID=null\nAuth=" + shown + "\n", nil
}

// appToken returns the token apps send along with changes. Only their login counts.
func (s *Server) appToken(r *http.Request) (any, error) {
	return hashOf(r.Header.Get("Authorization"))[:57], nil
}

func (s *Server) appUser(r *http.Request) (any, error) {
	name, _, _ := loginOf(r)
	return map[string]string{"userId": name, "userName": name, "userProfileId": name, "userEmail": name}, nil
}

// refuseApp refuses everything else: all changes but marks.
func (s *Server) refuseApp(*http.Request) (any, error) { return nil, errAppLimited }

// streamID names the stream of a feed.
func streamID(feed *mirror.Feed) string { return "feed/" + republish.Name(feed.URL) }

// streamsOf returns the streams with the entries of a feed: all, its own, its folders.
func streamsOf(feed *mirror.Feed) []string {
	all := []string{readingList, streamID(feed)}
	for _, path := range feed.Folders {
		all = append(all, labelPrefix+folderKey(path))
	}
	return all
}

// appFeeds returns the feeds of a stream by their URLs, without the ledgers, which are large.
func (s *Server) appFeeds(ctx context.Context, stream string) (map[string]*mirror.Feed, error) {
	all := map[string]*mirror.Feed{}
	for feed, err := range s.store.Feeds(ctx, mirror.FeedQuery{}) {
		if err != nil {
			return nil, err
		}
		if slices.Contains(streamsOf(feed), stream) {
			feed.Ledger, all[feed.URL] = mirror.Ledger{}, feed
		}
	}
	return all, nil
}

// appList lists the feeds.
func (s *Server) appList(r *http.Request) (any, error) {
	list := []readers.GoogleReaderFeed{}
	feeds, err := s.appFeeds(r.Context(), readingList)
	for _, url := range slices.Sorted(maps.Keys(feeds)) {
		feed := feeds[url]
		one := readers.GoogleReaderFeed{ID: streamID(feed), Title: titleOf(feed), URL: feedhistory.Redact(url), Site: republish.Site(feed), Categories: []readers.GoogleReaderFolder{}}
		for _, id := range streamsOf(feed)[2:] {
			one.Categories = append(one.Categories, readers.GoogleReaderFolder{ID: id, Label: strings.TrimPrefix(id, labelPrefix)})
		}
		list = append(list, one)
	}
	return map[string]any{"subscriptions": list}, err
}

// appTags lists the streams other than feeds.
func (s *Server) appTags(r *http.Request) (any, error) {
	feeds, err := s.appFeeds(r.Context(), readingList)
	var folders []string
	for _, feed := range feeds {
		folders = append(folders, streamsOf(feed)[2:]...)
	}
	slices.Sort(folders)
	tags := []map[string]string{{"id": starState}}
	for _, id := range slices.Compact(folders) {
		tags = append(tags, map[string]string{"id": id, "type": "folder"})
	}
	return map[string]any{"tags": tags}, err
}

// appUnread counts the unread entries of each stream.
func (s *Server) appUnread(r *http.Request) (any, error) {
	feeds, err := s.appFeeds(r.Context(), readingList)
	counts, newest := map[string]int64{readingList: 0}, map[string]int64{}
	for url, feed := range feeds {
		reading, err := s.readingOf(r, url)
		if err != nil {
			return nil, err
		}
		for _, id := range streamsOf(feed) {
			counts[id] += max(feed.Entries-totalOf(reading.read), 0)
			newest[id] = max(newest[id], feed.Changed.UnixMicro())
		}
	}
	list := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, map[string]any{"id": id, "count": counts[id], "newestItemTimestampUsec": fmt.Sprint(newest[id])})
	}
	return map[string]any{"max": counts[readingList], "unreadcounts": list}, err
}

// A stream is a list of entries, and an answer with some of them.
type stream struct {
	ID      string                     `json:"id"`
	Updated int64                      `json:"updated"`
	Items   []readers.GoogleReaderItem `json:"items"`
	Refs    []map[string]string        `json:"itemRefs"`
	Next    string                     `json:"continuation,omitempty"`

	query        mirror.Query
	feeds        map[string]*mirror.Feed // the feeds of the entries, by URL
	want         map[string]bool         // the marks entries must have, or must not have
	since, until int64                   // when entries came here, in microseconds; zero means any time
	room         int                     // for texts, in bytes
}

// streamOf returns the stream a request asks for.
func (s *Server) streamOf(r *http.Request, id string) (*stream, error) {
	a := &stream{
		ID: cmp.Or(id, readingList), Updated: s.now().Unix(), Items: []readers.GoogleReaderItem{}, Refs: []map[string]string{}, room: mostTexts,
		query: mirror.Query{Reverse: r.Form.Get("r") == "o", Beyond: parseToken(r.Form.Get("c")), Limit: atOnce}, want: map[string]bool{},
	}
	of := a.ID
	if appMarks[of] != "" {
		of = readingList
	}
	var err error
	switch a.feeds, err = s.appFeeds(r.Context(), of); {
	case err != nil:
		return nil, err
	case r.Form.Get("c") != "" && a.query.Beyond == nil:
		return nil, errAppRequest
	case len(a.feeds) == 0 && of != readingList:
		return nil, mirror.ErrNotFound
	case len(a.feeds) == 1:
		a.query.Feed = slices.Collect(maps.Keys(a.feeds))[0]
	}
	since, _ := strconv.ParseInt(r.Form.Get("ot"), 10, 64)
	until, _ := strconv.ParseInt(r.Form.Get("nt"), 10, 64)
	a.since, a.until = since*1e6, until*1e6
	for name, with := range map[string]bool{"it": true, "xt": false} {
		for _, tag := range r.Form[name] {
			a.want[appMarks[tag]] = with
		}
	}
	a.want[appMarks[a.ID]] = true
	delete(a.want, "") // of other states
	return a, nil
}

// has reports whether an entry with these marks belongs to the stream.
func (a *stream) has(r *mirror.Record, m *mirror.Marks) bool {
	for name, want := range a.want {
		if m.Time(name).IsZero() == want {
			return false
		}
	}
	at := r.Added.UnixMicro()
	return a.feeds[r.Feed] != nil && at >= a.since && (a.until == 0 || at <= a.until)
}

// idsOf returns the IDs of records by feed.
func idsOf(records []*mirror.Record) map[string][]string {
	ids := map[string][]string{}
	for _, record := range records {
		ids[record.Feed] = append(ids[record.Feed], record.ID)
	}
	return ids
}

// marked calls take with each record and its marks, in their order.
func (s *Server) marked(r *http.Request, records []*mirror.Record, take func(*mirror.Record, *mirror.Marks) error) error {
	marks := map[[2]string]*mirror.Marks{}
	for feed, ids := range idsOf(records) {
		all, err := s.marks(r, mirror.MarksQuery{Feed: feed, IDs: ids})
		if err != nil {
			return err
		}
		for _, m := range all {
			marks[[2]string{feed, m.ID}] = m
		}
	}
	for _, record := range records {
		if err := take(record, cmp.Or(marks[[2]string{record.Feed, record.ID}], &mirror.Marks{})); err != nil {
			return err
		}
	}
	return nil
}

// A take adds an entry with its marks to the answer.
type take func(r *http.Request, a *stream, record *mirror.Record, m *mirror.Marks) error

// part answers with as many entries of a stream as a request asks for.
func (s *Server) part(r *http.Request, id string, take take) (*stream, error) {
	a, err := s.streamOf(r, id)
	if err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(r.Form.Get("n")) // the largest number, if it is larger
	return a, s.takeFrom(r, a, min(cmp.Or(max(n, 0), usualItems), mostItems), take)
}

// takeFrom takes the next n entries of a stream. Next leads to the others.
func (s *Server) takeFrom(r *http.Request, a *stream, n int, take take) (err error) {
	a.Next = ""
	for walked, full := 0, false; err == nil && !full; walked += atOnce {
		var batch []*mirror.Record
		size := 0
		for record, err := range s.store.Entries(r.Context(), a.query) {
			if err != nil {
				return err
			}
			if size += len(record.Content.Data); size > mostRead {
				record.Content.Data = "" // it is read again when it is needed
			}
			batch = append(batch, record)
		}
		err = s.marked(r, batch, func(record *mirror.Record, m *mirror.Marks) error {
			if full = full || a.has(record, m) && (n == 0 || a.room < mostShown); full {
				return nil
			}
			a.query.Beyond = record
			if !a.has(record, m) {
				return nil
			}
			n--
			return take(r, a, record, m)
		})
		if len(batch) < atOnce && !full {
			return err
		}
		full = full || walked == mostWalked
	}
	if err == nil {
		a.Next = token(a.query.Beyond)
	}
	return err
}

// appNumbers answers with the numbers of a stream's entries.
func (s *Server) appNumbers(r *http.Request) (any, error) {
	return s.part(r, r.Form.Get("s"), func(_ *http.Request, a *stream, record *mirror.Record, _ *mirror.Marks) error {
		a.Refs = append(a.Refs, map[string]string{"id": fmt.Sprint(s.number(record))})
		return nil
	})
}

// addItem adds an entry to the answer, with its text as pages show it, as far as there is room.
func (s *Server) addItem(r *http.Request, a *stream, record *mirror.Record, m *mirror.Marks) (err error) {
	if record.Content.Data == "" {
		if record, err = mirror.Lookup(r.Context(), s.store, record.Feed, record.ID); err != nil {
			return err
		}
	}
	feed := a.feeds[record.Feed]
	room := min(a.room, mostShown)
	a.room -= room
	text, e := newWording(record.Content, record.Copy, record.Entry, display{images: true}, &room)
	a.room += room
	own := s.base() + "feeds/" + republish.Name(feed.URL) + "/entry" + queryOf("id", record.ID)
	if text.Cut {
		text.Summary += template.HTML(`<p><a href="` + template.HTMLEscapeString(own) + `">The rest of the text</a></p>`)
	}
	states := streamsOf(feed)
	for _, state := range []string{readState, starState} {
		if !m.Time(appMarks[state]).IsZero() {
			states = append(states, state)
		}
	}
	link := []readers.GoogleReaderLink{{Href: cmp.Or(webLink(record.Content.Link), own), Type: "text/html"}}
	item := readers.GoogleReaderItem{
		ID: fmt.Sprintf("%s%016x", itemPrefix, s.number(record)), GUID: record.ID,
		Crawled: fmt.Sprint(record.Added.UnixMilli()), Stamp: fmt.Sprint(record.Added.UnixMicro()),
		Title: text.Title, Published: readers.Number(record.Time().Unix()), Author: text.Authors, States: states, Alternate: link, Canonical: link,
		Summary: readers.GoogleReaderText{Text: string(text.Content + text.Summary)},
		Origin:  readers.GoogleReaderOrigin{StreamID: streamID(feed), FeedURL: feedhistory.Redact(feed.URL), Title: titleOf(feed), HTMLURL: republish.Site(feed)},
	}
	for _, file := range newEnclosures(e, nil, false, "").List {
		item.Enclosure = append(item.Enclosure, readers.GoogleReaderLink{Href: file.URL, Type: file.Kind})
	}
	a.Items = append(a.Items, item)
	return nil
}

// appEntries answers with entries of a stream.
func (s *Server) appEntries(r *http.Request) (any, error) {
	return s.part(r, cmp.Or(r.PathValue("stream"), r.Form.Get("s")), s.addItem)
}

// appAtom answers with entries of a stream as Atom, for newsboat. The state of an entry is a
// category.
func (s *Server) appAtom(r *http.Request) (any, error) {
	a, err := s.part(r, r.PathValue("stream"), s.addItem)
	if err != nil {
		return nil, err
	}
	head := &feedhistory.Document{ID: "tag:google.com,2005:reader/" + a.ID, Title: a.ID, Updated: s.now()}
	var entries []*feedhistory.Entry
	for _, item := range a.Items {
		d, state := item.Draft(), "kept-unread"
		if slices.Contains(item.States.([]string), readState) {
			state = readers.Read
		}
		d.ID, d.Updated = item.ID, time.Unix(int64(item.Published), 0)
		d.Categories = []compose.Category{{Term: state, Scheme: "http://www.google.com/reader/", Label: state}}
		e, err := d.Entry()
		if err != nil {
			return nil, err
		}
		entries = append(entries, e)
	}
	var text bytes.Buffer
	return &text, compose.WriteAtom(&text, compose.Page(head, entries, compose.Links{}))
}

// appItems answers with the entries a request names.
func (s *Server) appItems(r *http.Request) (any, error) {
	records, err := s.entriesNamed(r)
	a, err2 := s.streamOf(r, "")
	if err := cmp.Or(err, err2); err != nil {
		return nil, err
	}
	return a, s.marked(r, records, func(record *mirror.Record, m *mirror.Marks) error { return s.addItem(r, a, record, m) })
}

// appEdit sets marks of the entries a request names. Other states are ignored.
func (s *Server) appEdit(r *http.Request) (any, error) {
	form := url.Values{}
	for name, value := range map[string]string{"a": "on", "r": "off"} {
		for _, tag := range r.Form[name] {
			if strings.HasPrefix(tag, labelPrefix) {
				return nil, errAppLimited
			}
			form.Set(map[string]string{readState: "read", starState: "star"}[tag], value)
		}
	}
	records, err := s.entriesNamed(r)
	if err != nil {
		return nil, err
	}
	return "OK", s.markAll(r.Context(), records, form)
}

// markAll sets the marks a form names.
func (s *Server) markAll(ctx context.Context, records []*mirror.Record, form url.Values) error {
	now := s.now().UTC()
	for feed, ids := range idsOf(records) {
		if err := s.mark(ctx, feed, ids, func(m *mirror.Marks) { setMarks(m, form, now) }); err != nil && !errors.Is(err, mirror.ErrNotFound) { // it may have just been removed
			return err
		}
	}
	return nil
}

// appReadAll marks the entries of a stream as read, up to a time in microseconds.
func (s *Server) appReadAll(r *http.Request) (any, error) {
	until, err := strconv.ParseInt(cmp.Or(r.Form.Get("ts"), "0"), 10, 64)
	if err != nil {
		return nil, errAppRequest
	}
	r.Form.Set("nt", fmt.Sprint(until/1e6))
	r.Form.Set("xt", readState)
	a, err := s.streamOf(r, r.Form.Get("s"))
	if err != nil {
		return nil, err
	}
	for a.Next = "all"; a.Next != ""; {
		var records []*mirror.Record
		err := s.takeFrom(r, a, mostItems, func(_ *http.Request, _ *stream, record *mirror.Record, _ *mirror.Marks) error {
			records = append(records, &mirror.Record{Feed: record.Feed, ID: record.ID})
			return nil
		})
		if err == nil {
			err = s.markAll(r.Context(), records, url.Values{"read": {"on"}})
		}
		if err != nil {
			return nil, err
		}
	}
	return "OK", nil
}

// The number of an entry is a digest: 16 bits of its feed's URL and 47 bits of its ID, so it
// never changes. The numbers given last are remembered; for others, the entries of the feeds
// with the same bits are read.

func (s *Server) number(record *mirror.Record) int64 {
	n := feedNumber(record.Feed)<<47 | int64(digest(record.Feed+"\n"+record.ID)>>17)
	s.numbers.Put(n, [2]string{record.Feed, record.ID})
	return n
}

func feedNumber(feed string) int64 { return int64(digest(feed) >> 48) }

func digest(text string) uint64 {
	sum := sha256.Sum256([]byte(text))
	return binary.BigEndian.Uint64(sum[:])
}

// numberOf reads the number of an entry, in decimal digits, or in hexadecimal ones as in a tag.
func numberOf(text string) (int64, error) {
	digits, isTag := strings.CutPrefix(text, itemPrefix)
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || isTag || digits[0] == '0' {
		n, err = strconv.ParseInt(digits, 16, 64)
	}
	return n, err
}

// entriesNamed returns the records of the entries a request names by numbers, without
// unknown ones.
func (s *Server) entriesNamed(r *http.Request) (found []*mirror.Record, err error) {
	named, missing, likely := map[string][]string{}, map[int64]bool{}, map[int64]bool{}
	for _, text := range r.Form["i"] {
		n, err := numberOf(text)
		if err != nil {
			return nil, errAppRequest
		}
		if name, ok := s.numbers.Get(n); ok {
			named[name[0]] = append(named[name[0]], name[1])
		} else {
			missing[n], likely[n>>47] = true, true
		}
	}
	var feeds map[string]*mirror.Feed
	if len(missing) > 0 {
		if feeds, err = s.appFeeds(r.Context(), readingList); err != nil {
			return nil, err
		}
	}
	for url := range feeds {
		if !likely[feedNumber(url)] {
			continue
		}
		for record, err := range s.store.Entries(r.Context(), mirror.Query{Feed: url}) {
			if err != nil {
				return nil, err
			}
			if missing[s.number(record)] {
				named[url] = append(named[url], record.ID)
			}
		}
	}
	for feed, ids := range named {
		known, err := s.store.Records(r.Context(), feed, ids)
		if err != nil {
			return nil, err
		}
		found = slices.AppendSeq(found, maps.Values(known))
	}
	return found, nil
}
