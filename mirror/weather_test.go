package mirror_test

import (
	"bytes"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/feedhistory/feedhistory/mirror"
)

var weathers = flag.Int("weathers", feedtest.Count(1000), "the number of schedules TestModelInAnyWeather draws")

// A weather is what happens to a feed's documents on their way, without the publisher's doing. It
// is another one at each poll.
type weather struct {
	model  http.Handler
	random *rand.Rand
	seed   uint64
	glitch string        // what the subscription document is
	others float64       // the share of other documents in whose place there is one of another feed
	loses  float64       // the share of documents in which an entry is lost
	age    bool          // everything may be kept for a year
	clock  time.Duration // how wrong the reader's clock is
	once   int           // the number of the poll

	withdrawn map[string]bool // by the publisher
	secure    bool            // the permalinks have changed
}

// change changes the weather for the next poll, and returns what it is. No stranger answers before
// the feed is known, or twice in a row, so none is adopted.
func (w *weather) change(isKnown bool) string {
	was := w.glitch
	w.clear()
	w.age = w.random.IntN(6) == 0
	switch n := w.random.IntN(20); {
	case n < 4:
		w.glitch = []string{"empty", "empty, without links", "notice", "tombstone", "stranger", "moved"}[w.random.IntN(6)]
		if strings.Contains("stranger moved", w.glitch) && (was != "" || !isKnown) {
			w.glitch = ""
		}
	case n < 7:
		w.others = []float64{0.2, 1}[w.random.IntN(2)]
	case n < 10:
		w.loses = []float64{0.2, 1}[w.random.IntN(2)]
	case n < 12:
		w.clock = clockErrors[w.random.IntN(len(clockErrors))] * time.Duration(1-2*w.random.IntN(2))
	}
	return fmt.Sprintf("weather: glitch %q, others %v, loses %v, age %v, clock wrong by %v", w.glitch, w.others, w.loses, w.age, w.clock)
}

func (w *weather) clear() {
	*w = weather{model: w.model, random: w.random, seed: w.seed, once: w.once + 1, withdrawn: w.withdrawn, secure: w.secure}
}

// draw returns the random numbers of a request, in whatever order requests come.
func (w *weather) draw(q *http.Request) *rand.Rand {
	h := fnv.New64a()
	_, _ = io.WriteString(h, q.URL.RequestURI())
	return rand.New(rand.NewPCG(h.Sum64(), w.seed+uint64(w.once)))
}

var (
	modelItems = regexp.MustCompile(`(?m)^<(?:entry|item|at:deleted-entry).*\n`)
	modelMarks = regexp.MustCompile(`<a:link [^>]*>|<fh:[a-z]+/>`)
)

func (w *weather) ServeHTTP(rw http.ResponseWriter, q *http.Request) {
	isFeed, random := q.URL.RequestURI() == "/feed", w.draw(q)
	if isFeed && w.glitch == "moved" {
		http.Redirect(rw, q, "http://casino.example/", http.StatusMovedPermanently)
		return
	}
	if isFeed && w.glitch == "stranger" || !isFeed && random.Float64() < w.others {
		_, _ = rw.Write([]byte(strangers[random.IntN(len(strangers))]))
		return
	}
	if isFeed && w.glitch != "" {
		q = q.Clone(q.Context())
		q.Header.Del("If-None-Match")
	}
	answer := httptest.NewRecorder()
	w.model.ServeHTTP(answer, q)
	maps.Copy(rw.Header(), answer.Header())
	body := answer.Body.String()
	switch {
	case answer.Code != http.StatusOK:
	case isFeed && w.glitch != "":
		rw.Header().Del("ETag")
		body = w.glitched(body)
	case random.Float64() < w.loses:
		body = damaged(body, random)
		rw.Header().Set("ETag", fmt.Sprintf(`"damaged-%d"`, w.once))
	}
	if w.age {
		rw.Header().Set("Cache-Control", "max-age=31536000, immutable")
	}
	rw.WriteHeader(answer.Code)
	_, _ = rw.Write([]byte(body))
}

// strangers are documents of other feeds.
var strangers = []string{
	`<rss version="2.0"><channel><title>This name is parked</title><link>http://park.example/</link><description>Offers</description><generator>Parker 1</generator><item><title>Offer 1</title><guid>http://park.example/offer/1</guid></item></channel></rss>`,
	`<rss version="2.0"><channel><title>Error</title><link>http://park.example/</link><description>Try later</description><generator>Parker 1</generator></channel></rss>`,
	`<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:casino</id><title>Casino news</title><link href="http://casino.example/"/><link rel="prev-archive" href="/other/1"/><entry><id>urn:casino:1</id><title>Offer 1</title><updated>2029-01-01T00:00:00Z</updated></entry></feed>`,
	`<feed xmlns="http://www.w3.org/2005/Atom"><title>Casino news</title><link href="http://casino.example/"/><generator>Parker 1</generator><entry><id>http://casino.example/1</id><title>Offer 1</title><updated>2029-01-01T00:00:00Z</updated></entry></feed>`,
}

// glitched returns a document of the feed without what the publisher has published.
func (w *weather) glitched(body string) string {
	items := modelItems.FindAllString(body, -1)
	body = modelItems.ReplaceAllString(body, "")
	if w.glitch != "empty" {
		body = modelMarks.ReplaceAllString(body, "")
	}
	name, id := "entry", fmt.Sprintf("<id>urn:glitch:%d</id>", w.once)
	if strings.HasPrefix(body, "<rss") {
		name, id = "item", fmt.Sprintf("<guid>urn:glitch:%d</guid>", w.once)
	}
	item := fmt.Sprintf("<%s>%s<title>Maintenance</title></%s>", name, id, name)
	switch {
	case len(items) < 5: // no reader could tell a notice from a window of this size
		item = ""
	case w.glitch == "tombstone":
		item += fmt.Sprintf(`<at:deleted-entry ref="urn:glitch:%d" when="2029-01-01T00:00:00Z"/>`, w.once)
	case w.glitch != "notice":
		item = ""
	}
	return strings.Replace(body, "\n", "\n"+item, 1)
}

// damaged returns a document that is no longer well-formed, and has lost an entry or nothing.
func damaged(body string, random *rand.Rand) string {
	lines := modelItems.FindAllStringIndex(body, -1)
	if len(lines) == 0 {
		return body
	}
	n := random.IntN(len(lines))
	from, to := lines[n][0], lines[n][1]
	line := body[from:to]
	if strings.HasPrefix(line, "<at:") {
		return body
	}
	tag := line[:strings.IndexByte(line, '>')+1]
	switch random.IntN(5) {
	case 0: // the start tag
		return body[:from] + line[len(tag):] + body[to:]
	case 1: // the output ended within the entry, and something closed the rest
		end := "</feed>\n"
		if tag == "<item>" {
			end = "</channel></rss>\n"
		}
		return body[:from] + line[:len(tag)+random.IntN(len(line)-len(tag)-len("</item>\n"))] + end
	case 2: // a block, from this entry into the next one
		if n+1 == len(lines) || strings.HasPrefix(body[to:], "<at:") {
			return body
		}
		title := strings.Index(line, "<title>") + len("<title>")
		return body[:from] + line[:title] + body[to:]
	case 3: // nothing is lost: the end tag is there twice
		return body[:to-1] + "</" + tag[1:] + body[to-1:]
	}
	return body[:to] + "Notice: <b>x & y in feed.php\n" + body[to:]
}

// A publisher withdraws neighbours, deploys its site again, moves from http to https, and has
// habits; its documents come in any weather: documents of other feeds at each place, entries lost
// by damage, glitches, years for which to keep everything, and a wrong clock at some polls. No poll says "whole" of less
// than is published, and nothing of another feed is merged. In calm, ten polls, when they
// are due, make the mirror whole; those of a day, if it has pages.
func TestModelInAnyWeather(t *testing.T) {
	undecided = undecidedReadings{} // of a run before
	for seed := range feedtest.Seeds(*weathers) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testWeather(t, seed, nil) })
		})
	}
	t.Logf("undecided: %+v", undecided)
	require.LessOrEqual(t, undecided.windows+undecided.reused+undecided.twice, 3+*weathers/50)
}

// A program with a table of its own comes to the same.
func TestProgramInAnyWeather(t *testing.T) {
	for seed := range feedtest.Seeds(*weathers) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { testWeather(t, seed, newRows()) })
		})
	}
}

func testWeather(t *testing.T, seed uint64, own *rows) {
	random := rand.New(rand.NewPCG(seed, 3))
	model := feedtest.NewModel("/feed", seed)
	model.Habits = []feedtest.Habits{{}, {RSS: true}, {RSS: true, Permalinks: true}, {RSS: true, Shared: true}, {PageIDs: true}}[random.IntN(5)]
	s := &schedule{T: t, roads: newRoads(model, rand.New(rand.NewPCG(seed, 4))), random: random, store: mirror.NewMemory(), own: own}
	s.roads.weather = &weather{model: model, random: random, seed: seed << 20, withdrawn: map[string]bool{}}
	s.story = append(s.story, fmt.Sprintf("seed %d, %+v", seed, model.Habits))
	kinds := []string{"archived", "archived", "complete", "paged", "plain"}
	steady := random.IntN(2) == 0
	if model.Habits.PageIDs { // of another kind and with another id, it would be another feed
		kinds = []string{"archived"}
	} else if steady {
		kinds = []string{[]string{"archived", "complete", "paged"}[random.IntN(3)]}
	}
	model.Become(kinds[random.IntN(len(kinds))])
	secure := random.IntN(60)
	for step := range 5 + random.IntN(50) {
		switch n := random.IntN(13); {
		case n < 6:
			s.story = append(s.story, model.Step())
		case n == 6:
			kind := kinds[random.IntN(len(kinds))]
			model.Become(kind)
			s.story = append(s.story, "become "+kind)
		case n == 7:
			ids := model.Withdraw()
			for _, id := range ids {
				s.roads.weather.withdrawn[id] = true
			}
			s.story = append(s.story, fmt.Sprint("withdraw ", ids))
		case n == 8:
			model.Deploy()
			s.story = append(s.story, "deploy")
		case step == secure && model.Habits.Permalinks:
			s.settled()
			model.Secure()
			s.roads.weather.secure = true
			s.story = append(s.story, "secure")
			s.settled()
		default:
			model.Fail([]float64{0, 0.1, 0.5}[random.IntN(3)])
			f, err := s.feed()
			hasSome := err == nil && f.Ledger.URL() != "" && (own == nil && f.Entries > 0 || own != nil && len(own.titles()) > 0)
			s.story = append(s.story, s.roads.weather.change(hasSome))
			s.poll()
		}
	}
	model.Fail(0)
	s.roads.weather.clear()
	s.roads.settle()
	model.Close()
	if !steady {
		model.Become([]string{"archived", "complete"}[random.IntN(2)])
	}
	s.ends()
}

// hasAll requires that the mirror has what is published, once, and little else: what a
// publisher withdraws stays, unless its feed is complete; and before the end, what a damaged
// complete document has left out.
func (s *schedule) hasAll(isEnd bool) {
	published := s.roads.model.Published()
	verdict, has := s.has()
	if s.roads.weather == nil {
		require.Equal(s, published, has, s)
		return
	}
	if s.roads.model.Habits.Shared { // an item alone in a damaged document goes by its guid
		has = byText(has)
		published = byText(published)
	}
	for id, text := range has {
		name := strings.Replace(id, "https:", "http:", 1)
		if _, isTwice := has[name]; isTwice && id != name && s.roads.weather.secure {
			undecided.twice++
			continue
		}
		isOwn, isGlitch := strings.HasPrefix(text, "text "), strings.HasPrefix(id, "urn:glitch:")
		switch {
		case published[name] == text:
		case published[name] == "" && (isGlitch || isOwn && (verdict == feedhistory.VerdictLossy || !isEnd || s.roads.weather.withdrawn[name])):
			continue
		case published[name] == "" && isOwn && s.wasAdopted(): // fh:complete speaks of its own generation only
			undecided.earlier++
			continue
		case isOwn && verdict == feedhistory.VerdictLossy:
			undecided.slid++
			delete(published, name)
			continue
		case isOwn && (s.roads.model.Habits.Shared || s.roads.weather.secure):
			undecided.twice++
			delete(published, name)
			continue
		}
		require.Equal(s, published[name], text, "%s: %v", id, s)
		delete(published, name)
	}
	if verdict == feedhistory.VerdictLossy && len(published) > 0 { // entries slide while pages are read at several polls
		undecided.slid++
		return
	}
	if len(published) > 0 && s.roads.model.Habits.Shared {
		undecided.reused++
		return
	}
	require.Empty(s, published, s)
}

// undecided counts what no reader can decide:
//   - readings of a paged feed that lack an entry, or its latest version, because entries slid while
//     its pages were read at several polls;
//   - entries that are there twice, because their permalink and their text have changed since they
//     were read;
//   - entries of the feed as it was before it was taken for another one, which a complete document
//     of the other leaves alone;
//   - entries lost because two of them stood alone, in damaged documents, under the guid that all
//     share: a guid that is used again at a later poll is a change;
//   - schedules at whose end a window is owed, of archived feeds after damage and a notice in
//     succession, mostly.
var undecided undecidedReadings

type undecidedReadings struct{ slid, twice, reused, windows, earlier int }

// wasAdopted reports whether the feed was taken for another one.
func (s *schedule) wasAdopted() bool {
	f, err := s.feed()
	require.NoError(s, err)
	ledger, err := f.Ledger.MarshalJSON()
	require.NoError(s, err)
	return bytes.Contains(ledger, []byte(`"past":`))
}

// byText returns entries by the last word of their text, their ID at the publisher's.
func byText(entries map[string]string) map[string]string {
	all := map[string]string{}
	for id, text := range entries {
		if i := strings.LastIndex(text, " of "); i > 0 {
			id = text[i+len(" of "):]
		}
		for all[id] != "" {
			id += ", again"
		}
		all[id] = text
	}
	return all
}

// settled polls the feed in calm.
func (s *schedule) settled() {
	s.roads.model.Fail(0)
	s.roads.weather.clear()
	quiet := s.roads.random
	s.roads.random = nil
	for range 3 {
		time.Sleep(26 * time.Hour)
		_, err := s.update(s.Context(), newMirror(s.store, s.roads), 1000)
		require.NoError(s, err)
	}
	s.roads.random = quiet
}
