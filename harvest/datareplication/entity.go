package datareplication

import (
	"fmt"
	"net/textproto"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/replication"
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
func received(part replication.Part, page string, created time.Time) (*Entity, error) {
	e := &Entity{
		ContentID: strings.TrimSpace(part.Header.Get(replication.FieldID)),
		Operation: Operation(replication.Operation(part.Header)),
		Type:      part.Header.Get(replication.FieldType),
		Body:      part.Body, Header: part.Header, Page: page,
	}
	if err := part.Check(); err != nil {
		return nil, err
	}
	snapshot := !created.IsZero()
	if snapshot && e.Operation == "" {
		e.Operation = Put
	}
	stamp := part.Header.Get(replication.FieldModified)
	switch {
	case stamp == "" && snapshot:
		e.Modified = seconds(created)
		return e, nil
	case stamp == "":
		return nil, ErrNoStamp
	}
	var err error
	e.Modified, err = replication.ParseTime(stamp)
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
