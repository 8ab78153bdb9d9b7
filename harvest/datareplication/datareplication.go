// Package datareplication keeps copies of data up to date over HTTP. A feed is a log of
// entities, in pages linked to one another. Each entity puts, patches or deletes a
// resource. The package has both sides.
//
// A Harvester reads a feed from where it last stopped:
//
//	h := datareplication.Harvester{URL: "https://example.org/feed/"}
//	harvest := h.Harvest(ctx, mark) // the zero Mark at first
//	for e, err := range harvest.Entities() {
//		if err != nil {
//			return err
//		}
//		… // e.Operation, e.Body
//		mark, _ = harvest.Mark() // to be stored with that
//	}
//
// A Producer writes a feed to a publish.Output, and a Handler serves it:
//
//	p := &datareplication.Producer{Output: publish.Dir{Path: "feed"}}
//	err := p.Append(ctx, datareplication.Entity{ContentID: "1", Type: "application/json", Body: body})
//	http.Handle("/feed/", http.StripPrefix("/feed/", &datareplication.Handler{
//		FS: p.Output, Base: "https://example.org/feed/",
//	}))
//
// The README lists the duties of both sides; comments and errors cite them as
// datareplication#consumer-3.
//
// A function that takes a context may return the error of the context. Methods of nil pointers
// may panic, unless their comments say otherwise.
package datareplication

import (
	"errors"
	"fmt"
	"net/textproto"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/harvest"
	wire "github.com/feedhistory/feedhistory/internal/harvest"
)

// An Operation is an entity's effect on its resource (datareplication#feed-7). An
// unknown operation in a feed is an error, unless the Harvester is Lenient: then it is
// yielded unchanged, in capitals.
type Operation string

// The operations.
const (
	Put    Operation = "PUT"    // the body replaces the resource
	Delete Operation = "DELETE" // the resource is gone
	Patch  Operation = "PATCH"  // the body changes part of the resource; applying it twice may have a different effect
)

// An Entity is a change of a resource, or a resource in a snapshot. Only the
// caller can tell which resource that is: the protocol has no name for it.
type Entity struct {
	// ContentID is opaque, and unique in a feed. It is "" in a snapshot, and if
	// a Lenient Harvester yields an entity without one.
	ContentID string

	// Operation is "" if a Lenient Harvester yields an entity without one. In a
	// snapshot it is Put. To a Producer, "" means Put.
	Operation Operation

	// Modified is the entity's stamp, in whole seconds. A Producer sets it for
	// entities of the feed. For a resource in a snapshot it is when the
	// resource was last modified; zero means when the snapshot began.
	Modified time.Time

	Type string // the media type of Body, as written
	Body []byte // as it is sent

	// Header has all header fields of a received entity, with keys in the form of
	// net/textproto. A Producer adds those it does not set itself.
	Header textproto.MIMEHeader

	Page string // the URL of a received entity's page

	number int // its number on that page, from 1
}

// fault returns the error for an incomplete entity of a feed (datareplication#feed-4).
func (e *Entity) fault() error {
	switch {
	case e.ContentID == "":
		return ErrNoID
	case e.Operation != Put && e.Operation != Delete && e.Operation != Patch:
		return fmt.Errorf("%w: %q", ErrOperation, clip(string(e.Operation)))
	}
	return nil
}

// received returns the entity in a part of a page (datareplication#feed-4).
// created is when its snapshot was created, zero for the feed.
func received(part wire.Part, page string, created time.Time) (*Entity, error) {
	e := &Entity{
		ContentID: strings.TrimSpace(part.Header.Get(wire.FieldID)),
		Operation: Operation(wire.Operation(part.Header)),
		Type:      part.Header.Get(wire.FieldType),
		Body:      part.Body, Header: part.Header, Page: page,
	}
	if err := part.Check(); err != nil {
		return nil, err
	}
	snapshot := !created.IsZero()
	if snapshot && e.Operation == "" {
		e.Operation = Put
	}
	stamp := part.Header.Get(wire.FieldModified)
	switch {
	case stamp == "" && snapshot:
		e.Modified = seconds(created)
		return e, nil
	case stamp == "":
		return nil, ErrNoStamp
	}
	var err error
	e.Modified, err = wire.ParseTime(stamp)
	return e, err
}

// A Mark is a place in a feed: after the entity it names. Store it together with your
// work on the entity, so either both are stored or neither
// (datareplication#consumer-5). The zero value is the beginning.
type Mark struct {
	Time time.Time `json:"time,omitzero"` // the stamp of the entity

	// ContentID is the Content-ID of the entity: everything after it comes
	// exactly once. Without it, everything at or after Time comes, so some of
	// it may come again.
	ContentID string `json:"content_id,omitempty"`

	// Page is the URL of the page where the next harvest begins to look for the place: the
	// entity's page, or the oldest page reached by a harvest that ended while it was still
	// looking. It only saves requests, as Next does. If it is "", or the page is gone, the
	// next harvest begins at the newest page.
	Page string `json:"page,omitempty"`

	// Next is the URL of the page after Page, once the entity is known to be the last of
	// Page: the next harvest then reads no page again. If a harvest ended while it was
	// still looking for the entity, Next is the page where it would have looked next, and
	// Page is "" or older than the entity.
	Next string `json:"next,omitempty"`
}

// IsZero reports whether the mark is the beginning of the feed.
func (c Mark) IsZero() bool { return c.Time.IsZero() && c.ContentID == "" }

// The faults of entities. A harvest.ErrMalformed about an entity's content, and each
// harvest.ErrEntity, match one of them.
var (
	ErrNoID       = errors.New("an entity without Content-ID: a harvest could not continue exactly after it")
	ErrRepeatedID = errors.New("an entity with the Content-ID of an earlier one: a mark could mean either")
	ErrOperation  = errors.New("an Operation-Type other than PUT, DELETE and PATCH")
	ErrNoStamp    = errors.New("an entity without Last-Modified")
	ErrField      = errors.New("a header field cannot contain it")
	ErrLength     = wire.ErrLength // the length of the body differs from Content-Length
)

// The clauses cited by errors.
const (
	clauseReading  = "datareplication#feed-2: a page is multipart, with a boundary"
	clauseLinks    = "datareplication#feed-3: links of neighbours agree, and do not form a loop"
	clausePages    = "datareplication#feed-1: every linked page exists"
	clauseParts    = "datareplication#feed-4: each entity has a stamp, a unique ID and an operation"
	clauseStamps   = "datareplication#feed-5: stamps never decrease"
	clauseReach    = "datareplication#consumer-3: entities that the feed no longer has are lost"
	clauseMark     = "datareplication#consumer-2: what follows the mark's entity is yielded"
	clauseTorn     = "datareplication#consumer-4: no part of a torn entity is yielded"
	clauseBounded  = "datareplication#consumer-7: every harvest is bounded"
	clauseSnapshot = "datareplication#snapshot-1: an index has createdAt and the pages' URLs"
)

func linkError(url, rel, link, want string) error {
	text := fmt.Sprintf("the link with rel=%s leads to %s, but should lead to %s", rel, link, want)
	if link == "" {
		text = fmt.Sprintf("there is no link with rel=%s; it should lead to %s", rel, want)
	}
	return &harvest.Error{Code: harvest.ErrLink, URL: url, Text: text, Clause: clauseLinks}
}

// stampError reports an entity, or a page if it has no Content-ID, with a stamp earlier than
// that of an entity before.
func stampError(url, id string, at, before time.Time) error {
	what := "the page"
	if id != "" {
		what = fmt.Sprintf("the entity %q", clip(id))
	}
	return &harvest.Error{
		Code: harvest.ErrStamp, URL: url, Item: id, Clause: clauseStamps,
		Text: fmt.Sprintf("%s is stamped %s, after an entity stamped %s", what, stamp(at), stamp(before)),
	}
}

// malformed reports an unreadable page, entity or index of a snapshot; the number of the
// entity on its page, from 1, is zero for the page itself.
func malformed(url string, number int, err error, clause string) error {
	text := err.Error()
	if number > 0 {
		text = fmt.Sprintf("entity %d: %s", number, text)
	}
	return &harvest.Error{Code: harvest.ErrMalformed, URL: url, Text: text, Clause: clause, Err: err}
}

func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func clip(s string) string { return wire.Clip(s) }

// String describes the place.
func (c Mark) String() string {
	switch {
	case c.IsZero():
		return "the beginning"
	case c.ContentID == "":
		return stamp(c.Time)
	}
	return fmt.Sprintf("%s, entity %q", stamp(c.Time), clip(c.ContentID))
}
