package feedhistory_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/internal/feedtest"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// numbers are the integer fields of a Client's settings, by name.
func numbers(c *feedhistory.Client) map[string]reflect.Value {
	found := map[string]reflect.Value{}
	var visit func(name string, v reflect.Value)
	visit = func(name string, v reflect.Value) {
		switch v.Kind() {
		case reflect.Struct:
			for i := range v.NumField() {
				if f := v.Type().Field(i); f.IsExported() {
					visit(strings.TrimPrefix(name+"."+f.Name, "."), v.Field(i))
				}
			}
		case reflect.Int, reflect.Int64:
			found[name] = v
		}
	}
	visit("", reflect.ValueOf(c).Elem())
	return found
}

// Every number has one meaning: zero is the default, a negative one an error unless its field says
// otherwise, and the largest one overflows nowhere.
func TestNumbers(t *testing.T) {
	site := feedtest.Serve(t, threeDocuments)
	private := func() *feedhistory.Client { return &feedhistory.Client{AllowPrivate: true, Tries: 1} }
	names := numbers(private())
	require.Len(t, names, 10)
	for name, field := range names {
		t.Run(name, func(t *testing.T) {
			c := private()
			numbers(c)[name].SetInt(-1)
			h, err := c.Fetch(t.Context(), site.URL+"/feed.atom")
			if name == "MaxWait" { // says what it means
				require.NoError(t, err)
				return
			}
			require.ErrorContains(t, err, "Client."+name+" is negative")
			require.Nil(t, h)

			if name == "Pace" {
				return // a second request would wait for centuries
			}
			c = private()
			largest := int64(math.MaxInt64)
			if field.Kind() == reflect.Int {
				largest = math.MaxInt
			}
			numbers(c)[name].SetInt(largest)
			h, err = c.Fetch(t.Context(), site.URL+"/feed.atom")
			require.NoError(t, err)
			require.Equal(t, feedhistory.VerdictWhole, h.Verdict(), "%v", h.Gaps)
			require.Equal(t, 3, h.Documents)
			c.CloseIdle()
		})
	}
}

// A Parser's limit has the same meaning as a Client's.
func TestParserNumbers(t *testing.T) {
	const text = `<feed xmlns="http://www.w3.org/2005/Atom"><id>urn:f</id><link href="http://example.org/"/><entry><id>1</id></entry></feed>`
	for value, want := range map[int64]string{0: "", -1: "Parser.MaxBytes is negative", math.MinInt64: "is negative", math.MaxInt64: ""} {
		doc, err := feedhistory.Parser{MaxBytes: value}.Parse(io.MultiReader(strings.NewReader(text)), "")
		if want != "" {
			require.ErrorContains(t, err, want)
			continue
		}
		require.NoError(t, err, value)
		require.Len(t, doc.Entries, 1)
		require.Len(t, doc.Links, 1)
	}
	_, err := feedhistory.Parser{}.Parse(nil, "")
	require.ErrorContains(t, err, "the io.Reader is nil")
}

// A wrapper that passes requests on does not weaken the guard; another transport is on its own.
func TestWrap(t *testing.T) {
	site := feedtest.Serve(t, threeDocuments)
	var asked atomic.Int64
	made := 0
	c := &feedhistory.Client{Tries: 1, Wrap: func(next http.RoundTripper) http.RoundTripper {
		made++
		return feedtest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			asked.Add(1)
			return next.RoundTrip(r)
		})
	}}
	_, err := c.Get(t.Context(), site.URL+"/feed.atom")
	refused, ok := errors.AsType[*feedhistory.FetchError](err)
	require.True(t, ok, "%v", err)
	require.ErrorIs(t, refused, feedhistory.ErrPrivateAddress)
	require.Empty(t, site.Requests())
	allowed := c.Clone()
	allowed.AllowPrivate = true
	h, err := allowed.Fetch(t.Context(), site.URL+"/feed.atom")
	require.NoError(t, err)
	require.Equal(t, feedhistory.VerdictWhole, h.Verdict())
	require.EqualValues(t, 4, asked.Load())
	require.Equal(t, 2, made, "once for each client")
	allowed.CloseIdle()

	own := &feedhistory.Client{AllowPrivate: true, Transport: feedtest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: 200, Header: http.Header{"Cache-Control": {"max-age=60"}}, Body: io.NopCloser(strings.NewReader("<feed/>")), Request: r}, nil
	})}
	doc, err := own.Get(t.Context(), "http://127.0.0.1:1/")
	require.NoError(t, err)
	require.Equal(t, "max-age=60", doc.Response.Header.Get("Cache-Control"))
	require.WithinDuration(t, doc.Response.Received.Add(time.Minute), doc.Response.Fresh, 0)
}

// A user and a password are sent by Basic authentication, to their origin only.
func TestBasicAuthentication(t *testing.T) {
	var sent feedtest.List[string]
	c := &feedhistory.Client{
		Credentials:  []feedhistory.Credential{{Origin: "http://a.example", User: "Aladdin", Password: "open sesame"}},
		AllowPrivate: true, Transport: feedtest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			sent.Add(r.Header.Get("Authorization"))
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("<feed/>")), Request: r}, nil
		}),
	}
	for _, host := range []string{"a", "b"} {
		_, err := c.Get(t.Context(), "http://"+host+".example/")
		require.NoError(t, err)
	}
	require.Equal(t, []string{"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==", ""}, sent.All())
	require.NoError(t, c.Credentials[0].Check())
	require.Error(t, feedhistory.Credential{User: "a:b"}.Check())
	require.Error(t, feedhistory.Credential{User: "a", Header: http.Header{"Authorization": {"Bearer b"}}}.Check())
}

// hours returns the bits for hours.
func hours(list ...int) (bits uint32) {
	for _, h := range list {
		bits |= 1 << h
	}
	return bits
}

func days(list ...time.Weekday) (bits uint8) {
	for _, d := range list {
		bits |= 1 << d
	}
	return bits
}

const (
	day      = 24 * time.Hour
	allHours = 1<<24 - 1
	everyDay = 1<<7 - 1
	aMonth   = 31 * day // what a feed may ask for at most
	nsSy     = ` xmlns:sy="http://purl.org/rss/1.0/modules/syndication/"`
)

// The documents around the head sections in the tables below.
var shells = map[string]string{
	"rss":       `<rss version="2.0"` + nsSy + `><channel><title>T</title>HEAD<item><guid>urn:1</guid></item></channel></rss>`,
	"rss after": `<rss version="2.0"` + nsSy + `><channel><title>T</title><item><guid>urn:1</guid></item>HEAD</channel></rss>`,
	"rss 0.91":  `<!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN" "x"><rss version="0.91"><channel>HEAD</channel></rss>`,
	"rss in a namespace": `<rss version="2.0" xmlns="http://backend.userland.com/rss2"` + nsSy +
		`><channel>HEAD</channel></rss>`,
	"rss item": `<rss version="2.0"` + nsSy + `><channel><item><guid>urn:1</guid>HEAD</item></channel></rss>`,
	"rss 1.0": `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/"` + nsSy +
		`><channel rdf:about="x"><title>T</title>HEAD</channel><item rdf:about="urn:1"/></rdf:RDF>`,
	"atom":       `<feed xmlns="http://www.w3.org/2005/Atom"` + nsSy + `><title>T</title>HEAD<entry><id>urn:1</id></entry></feed>`,
	"atom after": `<feed xmlns="http://www.w3.org/2005/Atom"` + nsSy + `><entry><id>urn:1</id></entry>HEAD</feed>`,
	"atom entry": `<feed xmlns="http://www.w3.org/2005/Atom"` + nsSy + `><entry><id>urn:1</id>HEAD</entry></feed>`,
}

func TestSchedule(t *testing.T) {
	every := func(d time.Duration) feedhistory.Schedule { return feedhistory.Schedule{Every: d} }
	const daily = "<sy:updatePeriod>daily</sy:updatePeriod>"
	frequency := func(n string) string { return "<sy:updateFrequency>" + n + "</sy:updateFrequency>" }
	period := func(p string) string { return "<sy:updatePeriod>" + p + "</sy:updatePeriod>" }
	tests := []struct {
		shell, head string
		want        feedhistory.Schedule
	}{
		{"rss", "", feedhistory.Schedule{}},
		{"atom", "", feedhistory.Schedule{}},

		{"rss", "<ttl>60</ttl>", every(time.Hour)},
		{"rss", "<ttl>\n 60 </ttl>", every(time.Hour)},
		{"rss", "<ttl><![CDATA[60]]></ttl>", every(time.Hour)},
		{"rss after", "<ttl>60</ttl>", every(time.Hour)},
		{"rss 0.91", "<ttl>60</ttl>", every(time.Hour)},
		{"rss in a namespace", "<ttl>60</ttl>", every(time.Hour)},
		{"rss", "<ttl>1</ttl>", every(time.Minute)},
		{"rss", "<ttl>0</ttl>", feedhistory.Schedule{}},
		{"rss", "<ttl>-60</ttl>", feedhistory.Schedule{}},
		{"rss", "<ttl>-9223372036854775808</ttl>", feedhistory.Schedule{}},
		{"rss", "<ttl/>", feedhistory.Schedule{}},
		{"rss", "<ttl>soon</ttl>", feedhistory.Schedule{}},
		{"rss", "<ttl>60 minutes</ttl>", feedhistory.Schedule{}},
		{"rss", "<ttl>1e3</ttl>", feedhistory.Schedule{}},
		{"rss", "<ttl>43200</ttl>", every(30 * day)},
		{"rss", "<ttl>525600</ttl>", every(aMonth)},
		{"rss", "<ttl>9223372036854775807</ttl>", every(aMonth)},
		{"rss", "<ttl>99999999999999999999</ttl>", every(31 * 24 * time.Hour)},
		{"rss", "<ttl>60</ttl><ttl>30</ttl>", every(30 * time.Minute)},
		{"rss item", "<ttl>60</ttl>", feedhistory.Schedule{}},
		{"rss", `<ttl xmlns="urn:other">60</ttl>`, feedhistory.Schedule{}},
		{"atom", "<ttl>60</ttl>", feedhistory.Schedule{}},
		{"atom", `<ttl xmlns="">60</ttl>`, feedhistory.Schedule{}},

		{"rss 1.0", daily, every(day)},
		{"rss", daily, every(day)},
		{"atom", daily, every(day)},
		{"atom after", daily, every(day)},
		{"rss item", daily, feedhistory.Schedule{}},
		{"atom entry", daily, feedhistory.Schedule{}},
		{"rss 1.0", period("hourly") + frequency("2"), every(30 * time.Minute)},
		{"rss 1.0", frequency("2") + period("hourly"), every(30 * time.Minute)},
		{"rss 1.0", period(" Weekly\n"), every(7 * day)},
		{"rss 1.0", period("monthly"), every(30 * day)},
		{"rss 1.0", period("yearly"), every(aMonth)},
		{"rss 1.0", period("yearly") + frequency("12"), every(365 * day / 12)},
		{"rss 1.0", frequency("4"), every(6 * time.Hour)},
		{"rss 1.0", period("fortnightly"), feedhistory.Schedule{}},
		{"rss 1.0", daily + frequency("0"), every(day)},
		{"rss 1.0", daily + frequency("-3"), every(day)},
		{"rss 1.0", frequency("-3"), feedhistory.Schedule{}},
		{"rss 1.0", daily + frequency("often"), every(day)},
		{"rss 1.0", daily + frequency("99999999999999999999"), every(day / (1 << 20))},
		{"rss 1.0", `<updatePeriod xmlns="http://purl.org/rss/1.0/modules/syndication/">daily</updatePeriod>`, every(day)},
		{"rss 1.0", `<updatePeriod>daily</updatePeriod>`, feedhistory.Schedule{}},
		{"rss", "<ttl>60</ttl>" + daily, every(day)},
		{"rss", daily + frequency("48") + "<ttl>60</ttl>", every(time.Hour)},

		{"rss", "<skipHours><hour>0</hour><hour> 23 </hour></skipHours>", feedhistory.Schedule{SkipHours: hours(0, 23)}},
		{"rss", "<skipHours><hour>24</hour></skipHours>", feedhistory.Schedule{SkipHours: hours(0)}},
		{"rss", "<skipHours><hour>25</hour><hour>-1</hour><hour>noon</hour><hour/></skipHours>", feedhistory.Schedule{}},
		{"rss", "<skipHours><hour>03</hour></skipHours>", feedhistory.Schedule{SkipHours: hours(3)}},
		{"rss", "<skipHours>3<minute>4</minute></skipHours>", feedhistory.Schedule{}},
		{"rss", "<skipHours><hour>1</hour></skipHours><skipHours><hour>2</hour></skipHours>", feedhistory.Schedule{SkipHours: hours(1, 2)}},
		{"rss 0.91", "<skipHours><hour>7</hour></skipHours>", feedhistory.Schedule{SkipHours: hours(7)}},
		{"rss", "<skipDays><day>Saturday</day><day> sunday </day></skipDays>", feedhistory.Schedule{SkipDays: days(time.Saturday, time.Sunday)}},
		{"rss", "<skipDays><day>Sat</day><day>Someday</day><day/></skipDays>", feedhistory.Schedule{}},
		{"rss", "<hour>3</hour><day>Sunday</day>", feedhistory.Schedule{}},
		{"rss item", "<skipHours><hour>3</hour></skipHours><skipDays><day>Sunday</day></skipDays>", feedhistory.Schedule{}},
		{"atom", "<skipHours><hour>3</hour></skipHours>", feedhistory.Schedule{}},
		{
			"rss", "<ttl>90</ttl><skipHours><hour>3</hour></skipHours><skipDays><day>Friday</day></skipDays>",
			feedhistory.Schedule{Every: 90 * time.Minute, SkipHours: hours(3), SkipDays: days(time.Friday)},
		},
	}
	for _, test := range tests {
		doc, err := feedhistory.Parse(strings.NewReader(strings.Replace(shells[test.shell], "HEAD", test.head, 1)), "http://example.org/")
		require.NoError(t, err, "%s: %s", test.shell, test.head)
		require.Equal(t, test.want, doc.Schedule, "%s: %s", test.shell, test.head)
	}
}

func TestScheduleNext(t *testing.T) {
	monday := func(hour, minute int) time.Time { return time.Date(2026, 1, 5, hour, minute, 0, 0, time.UTC) }
	came := monday(10, 15)
	tests := []struct {
		name     string
		schedule feedhistory.Schedule
		fresh    time.Time
		want     time.Time
	}{
		{"nothing is said", feedhistory.Schedule{}, time.Time{}, time.Time{}},
		{"freshness alone", feedhistory.Schedule{}, monday(12, 0), monday(12, 0)},
		{"stale at once", feedhistory.Schedule{}, came, came},
		{"an interval alone", feedhistory.Schedule{Every: time.Hour}, time.Time{}, monday(11, 15)},
		{"an interval within the freshness", feedhistory.Schedule{Every: time.Hour}, monday(12, 0), monday(12, 0)},
		{"an interval beyond the freshness", feedhistory.Schedule{Every: 3 * time.Hour}, monday(12, 0), monday(13, 15)},
		{"an interval of the caller's that is negative", feedhistory.Schedule{Every: -time.Hour}, time.Time{}, time.Time{}},
		{"hours that are far", feedhistory.Schedule{Every: time.Hour, SkipHours: hours(3)}, time.Time{}, monday(11, 15)},
		{"skipped now", feedhistory.Schedule{SkipHours: hours(10)}, time.Time{}, monday(11, 0)},
		{"not skipped now", feedhistory.Schedule{SkipHours: hours(11)}, time.Time{}, came},
		{"skipped then", feedhistory.Schedule{Every: time.Hour, SkipHours: hours(11, 12)}, time.Time{}, monday(13, 0)},
		{"skipped when it is stale", feedhistory.Schedule{SkipHours: hours(12)}, monday(12, 59), monday(13, 0)},
		{"into the next day", feedhistory.Schedule{SkipHours: hours(22, 23, 0, 1)}, monday(22, 30), monday(26, 0)},
		{"a day", feedhistory.Schedule{SkipDays: days(time.Monday)}, time.Time{}, monday(24, 0)},
		{"two days", feedhistory.Schedule{Every: day, SkipDays: days(time.Tuesday, time.Wednesday)}, time.Time{}, monday(3*24, 0)},
		{"an interval of more than a day", feedhistory.Schedule{Every: 5 * day}, time.Time{}, monday(34, 15)},
		{"fresh for a year", feedhistory.Schedule{}, monday(365*24, 0), monday(34, 15)},
		{"a day and the hours after it", feedhistory.Schedule{SkipDays: days(time.Monday), SkipHours: hours(0, 1)}, time.Time{}, monday(26, 0)},
		{"all days but today", feedhistory.Schedule{Every: day, SkipDays: everyDay &^ days(time.Monday)}, time.Time{}, monday(7*24, 0)},
		{"all but one hour a week", feedhistory.Schedule{SkipDays: everyDay &^ days(time.Monday), SkipHours: allHours &^ hours(9)}, time.Time{}, monday(7*24+9, 0)},
		{"bits without a meaning", feedhistory.Schedule{SkipHours: 1 << 30, SkipDays: 1 << 7}, time.Time{}, came},

		{"all hours", feedhistory.Schedule{SkipHours: allHours}, time.Time{}, came},
		{"all hours, from an interval", feedhistory.Schedule{Every: time.Hour, SkipHours: allHours}, time.Time{}, monday(11, 15)},
		{"all days", feedhistory.Schedule{SkipDays: everyDay}, monday(12, 0), monday(12, 0)},
		{"everything", feedhistory.Schedule{Every: time.Hour, SkipHours: math.MaxUint32, SkipDays: math.MaxUint8}, time.Time{}, monday(11, 15)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, zone := range []*time.Location{time.UTC, time.FixedZone("", 5*3600+1800), time.FixedZone("", -11*3600)} {
				fresh := test.fresh
				if !fresh.IsZero() {
					fresh = fresh.In(zone)
				}
				got := test.schedule.Next(feedhistory.Response{Received: came.In(zone), Fresh: fresh})
				if nothing := test.fresh.IsZero() && test.schedule.Every == 0; nothing && test.want.Equal(came) && got.IsZero() {
					continue // nothing to wait for can be said so as well
				}
				require.True(t, test.want.Equal(got), "want %v, got %v", test.want, got)
			}
		})
	}
}

// Next is the earliest time that satisfies all wishes, and never far beyond the interval and the
// freshness.
func TestScheduleNextIsTheEarliest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := feedhistory.Schedule{
			Every:     time.Duration(rapid.IntRange(-10, 3000).Draw(t, "minutes")) * time.Minute,
			SkipHours: uint32(rapid.Uint32Range(0, allHours).Draw(t, "hours")),
			SkipDays:  uint8(rapid.Uint8Range(0, everyDay).Draw(t, "days")),
		}
		if s.SkipHours == allHours || s.SkipDays == everyDay {
			t.Skip("the table has these")
		}
		came := at(rapid.IntRange(1, 1_000_000).Draw(t, "second"))
		fresh := time.Time{}
		if rapid.Bool().Draw(t, "has freshness") {
			fresh = came.Add(time.Duration(rapid.IntRange(0, 200_000).Draw(t, "fresh")) * time.Second)
		}
		next := s.Next(feedhistory.Response{Received: came, Fresh: fresh})

		from := came // when there would be nothing to skip
		if s.Every > 0 {
			from = from.Add(s.Every)
		}
		if fresh.After(from) {
			from = fresh
		}
		if latest := came.Add(day); from.After(latest) {
			from = latest
		}
		if s == (feedhistory.Schedule{Every: s.Every}) {
			if s.Every <= 0 && fresh.IsZero() {
				from = time.Time{}
			}
			require.True(t, from.Equal(next), "%v instead of %v", next, from)
			return
		}
		skipped := func(at time.Time) bool {
			at = at.UTC()
			return s.SkipHours&hours(at.Hour()) != 0 || s.SkipDays&days(at.Weekday()) != 0
		}
		if s.Every <= 0 && fresh.IsZero() && !skipped(came) && next.IsZero() {
			return // nothing to wait for
		}
		require.False(t, next.Before(from))
		require.False(t, skipped(next), "%v is skipped", next)
		for at := from; at.Before(next); at = at.Truncate(time.Hour).Add(time.Hour) {
			require.True(t, skipped(at), "%v would have been early enough, not %v", at, next)
		}
		require.LessOrEqual(t, next.Sub(from), 8*day)
	})
}

// Next combines the rules of HTTP with the schedule of the feed.
func TestNextPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rss := strings.Replace(shells["rss"], "HEAD", "<ttl>60</ttl><skipHours><hour>2</hour></skipHours>", 1)
		plain := strings.Replace(shells["atom"], "HEAD", "", 1)
		midnight := time.Now() // a bubble begins with the year 2000
		require.Equal(t, 0, midnight.UTC().Hour())
		in := func(d time.Duration) time.Time { return midnight.Add(d) }
		date := func(d time.Duration) string { return in(d).UTC().Format(http.TimeFormat) }
		tests := []struct {
			body   string
			header []string
			want   time.Time
		}{
			{plain, nil, time.Time{}},
			{plain, []string{"Cache-Control: max-age=600"}, in(10 * time.Minute)},
			{plain, []string{"Cache-Control: max-age=600", "Age: 60"}, in(9 * time.Minute)},
			{plain, []string{"Cache-Control: max-age=600", "Age: 6000"}, in(0)},
			{plain, []string{"Cache-Control: max-age=-600"}, in(0)},
			{plain, []string{"Cache-Control: max-age=soon"}, in(0)},
			{plain, []string{"Cache-Control: no-cache"}, in(0)},
			{plain, []string{"Cache-Control: private"}, time.Time{}},
			{plain, []string{"Expires: " + date(time.Hour)}, in(time.Hour)},
			{plain, []string{"Expires: " + date(3*time.Hour), "Date: " + date(time.Hour)}, in(2 * time.Hour)},
			{plain, []string{"Expires: " + date(-time.Hour)}, in(0)},
			{plain, []string{"Expires: 0"}, in(0)},
			{rss, nil, in(time.Hour)},
			{rss, []string{"Cache-Control: max-age=600"}, in(time.Hour)},
			{rss, []string{"Cache-Control: max-age=7200"}, in(3 * time.Hour)},
			{rss, []string{"Cache-Control: no-store"}, in(time.Hour)},
		}
		for _, test := range tests {
			l := &feedtest.Line{Serve: func(*http.Request) feedtest.Reply { return feedtest.Reply{Header: test.header, Body: test.body} }}
			client := &feedhistory.Client{AllowPrivate: true, Transport: l}
			doc, err := client.Get(t.Context(), "http://a.example/feed")
			require.NoError(t, err)
			require.True(t, midnight.Equal(doc.Response.Received))
			require.True(t, test.want.Equal(doc.Schedule.Next(doc.Response)), "%v: want %v, got %v", test.header, test.want, doc.Schedule.Next(doc.Response))
		}
	})
}

// A mistake in one header does not silence a feed for good: the limit on ttl also applies to HTTP.
func TestNextPollIsNotForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, header := range []string{
			"Cache-Control: max-age=31536000, immutable",
			"Cache-Control: max-age=99999999999999999999",
			"Expires: Fri, 31 Dec 9999 23:59:59 GMT",
		} {
			l := &feedtest.Line{Serve: func(*http.Request) feedtest.Reply {
				return feedtest.Reply{Header: []string{header}, Body: strings.Replace(shells["rss"], "HEAD", "", 1)}
			}}
			client := &feedhistory.Client{AllowPrivate: true, Transport: l}
			doc, err := client.Get(t.Context(), "http://a.example/feed")
			require.NoError(t, err)
			require.False(t, doc.Schedule.Next(doc.Response).IsZero())
			require.LessOrEqual(t, doc.Schedule.Next(doc.Response).Sub(doc.Response.Received), aMonth, "%s: not before %v", header, doc.Schedule.Next(doc.Response))
		}
	})
}

// All dates of a document are read, however many of them are unusual.
func TestTimesAreAllRead(t *testing.T) {
	unusual := []string{
		"2003-12-13", "Saturday, December 13, 2003", "13.12.2003 18:30", "13 Dec 2003 18:30 MEZ",
		"Sat Dec 13 18:30:02 JST 2003", "2003-12-13T18:30+09:00", "2003-12-13 23:59:60",
	}
	var feed strings.Builder
	feed.WriteString("<rss><channel>")
	const n = 50_000
	for i := range n {
		fmt.Fprintf(&feed, "<item><guid>%d</guid><pubDate>%s</pubDate></item>", i, unusual[i%len(unusual)])
	}
	feed.WriteString("</channel></rss>")
	doc, err := feedhistory.Parse(strings.NewReader(feed.String()), "")
	require.NoError(t, err)
	require.Len(t, doc.Entries, n)
	for _, e := range doc.Entries {
		require.Equal(t, 2003, e.Published.Year())
	}
	require.Empty(t, doc.Notes)
}

// A doubtful zone makes one note for a document, so that there is room for other notes. Zones that
// RFC 822 defines make none.
func TestTimesZoneNotes(t *testing.T) {
	var feed strings.Builder
	feed.WriteString("<rss><channel>")
	for range 100 {
		for _, zone := range []string{"EST", "BST", "bst", "CST", "CET", "XYZ", "A", "+0100"} {
			feed.WriteString("<item><pubDate>Sat, 13 Dec 2003 18:30:02 " + zone + "</pubDate></item>")
		}
	}
	feed.WriteString("</channel></rss>")
	doc, err := feedhistory.Parse(strings.NewReader(feed.String()), "")
	require.NoError(t, err)
	var notes []string
	for _, n := range doc.Notes {
		notes = append(notes, n.Code+": "+n.Message)
	}
	require.Equal(t, []string{
		"zone-ambiguous: the time zone BST is read as +01:00",
		"zone-ambiguous: the time zone CST is read as -06:00",
		"zone-unknown: the time zone XYZ is read as UTC",
	}, notes)
}

// HTTP requires two digits for the day (RFC 9110 §5.6.7), but some servers write one.
func TestLastModified(t *testing.T) {
	for text, want := range map[string]time.Time{
		"Sun, 06 Nov 1994 08:49:37 GMT":  time.Date(1994, 11, 6, 8, 49, 37, 0, time.UTC),
		"Sun, 6 Nov 1994 08:49:37 GMT":   time.Date(1994, 11, 6, 8, 49, 37, 0, time.UTC),
		"Sunday, 06-Nov-94 08:49:37 GMT": time.Date(1994, 11, 6, 8, 49, 37, 0, time.UTC),
		"Sun Nov  6 08:49:37 1994":       time.Date(1994, 11, 6, 8, 49, 37, 0, time.UTC),
		"recently":                       {},
	} {
		doc, err := feedhistory.Parser{Header: http.Header{"Last-Modified": {text}}}.Parse(strings.NewReader("<rss><channel/></rss>"), "")
		require.NoError(t, err)
		require.True(t, want.Equal(doc.LastModified), "%s: %v", text, doc.LastModified)
	}
}

func TestParseURL(t *testing.T) {
	for ref, want := range map[string]string{
		"https://example.org/a b?q=ü#c d":  "https://example.org/a%20b?q=%C3%BC#c%20d",
		"https://example.org/100%#50%":     "https://example.org/100%25#50%25",
		"https://example.org/a%2Fb#c%2Fd":  "https://example.org/a%2Fb#c%2Fd",
		"https://example.org#top":          "https://example.org#top",
		"//example.org/é":                  "//example.org/%C3%A9",
		"#é":                               "#%C3%A9",
		"https://example.org/a#b#c":        "https://example.org/a#b%23c",
		"https://example.org/feed?a=1&b=2": "https://example.org/feed?a=1&b=2",
	} {
		u, err := feedhistory.ParseURL(ref)
		require.NoError(t, err, ref)
		require.Equal(t, want, u.String(), ref)
	}
	_, err := feedhistory.ParseURL("https://exa mple.org/")
	require.Error(t, err)
}

func TestHosts(t *testing.T) {
	require.Equal(t, "example.org", feedhistory.HostOf("https://Example.org.:443/a"))
	require.Equal(t, "example.org:8080", feedhistory.HostOf("http://example.org:8080"))
	require.Equal(t, "no url", feedhistory.HostOf("no url"))
	require.True(t, feedhistory.SameOrigin("https://example.org:443/a", "https://EXAMPLE.org/b"))
	require.False(t, feedhistory.SameOrigin("http://example.org/", "https://example.org/"))
	require.False(t, feedhistory.SameOrigin("", ""))
	require.Equal(t, "https://example.org/a@b", feedhistory.Redact("https://me:secret@example.org/a@b"))
}

// A login's parts are checked before they are sent, without quoting them.
func TestCredentialCheck(t *testing.T) {
	for _, c := range []feedhistory.Credential{
		{}, {Header: http.Header{"Authorization": {"Bearer abc"}}}, {Header: http.Header{"Cookie": {"a=b"}, "x-key": {"1", "2"}}},
	} {
		require.NoError(t, c.Check())
	}
	for _, c := range []feedhistory.Credential{
		{Header: http.Header{"Authorization": {"Bearer sec\nret"}}}, {Header: http.Header{"X-Key": {"sec\x00ret"}}},
		{Header: http.Header{"Host": {"secret"}}}, {Header: http.Header{"a b": {"secret"}}},
	} {
		require.Error(t, c.Check())
		require.NotContains(t, c.Check().Error(), "sec")
	}
}

func TestNewFetchError(t *testing.T) {
	recorded := httptest.NewRecorder()
	recorded.Header().Set("Retry-After", "90")
	recorded.WriteHeader(http.StatusTooManyRequests)
	synctest.Test(t, func(t *testing.T) {
		err := feedhistory.NewFetchError(recorded.Result())
		require.True(t, time.Now().Add(90*time.Second).Equal(err.RetryAt), "%v", err.RetryAt)
		require.Equal(t, http.StatusTooManyRequests, err.Status)
	})
	require.Zero(t, feedhistory.NewFetchError(&http.Response{StatusCode: 404}).RetryAt)
}
