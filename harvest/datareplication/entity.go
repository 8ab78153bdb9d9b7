package datareplication

import (
	"fmt"
	"net/textproto"
	"strings"
	"time"

	"github.com/feedhistory/feedhistory/internal/replication"
)

// An Operation says what an entity does to its resource
// (datareplication#feed-7). One that a feed names but the protocol does not know
// is an error, unless the Client is Lenient: then it is handed on as it is, in
// capitals.
type Operation string

// The operations.
const (
	Put    Operation = "PUT"    // the body replaces the resource
	Delete Operation = "DELETE" // the resource is gone
	Patch  Operation = "PATCH"  // the body changes a part of it; twice may not be the same as once
)

// An Entity is a change of a resource, or a resource of a snapshot. Which
// resource that is only the caller can tell: the protocol has no name for it.
type Entity struct {
	// ContentID is opaque, and unique in a feed. It is "" in a snapshot, and in
	// what a Lenient Client hands on without one.
	ContentID string

	// Operation of an entity to be published is Put if it is "". In a snapshot
	// it is Put; "" in an entity that names none, from a Lenient Client.
	Operation Operation

	// Modified is the entity's stamp, in whole seconds. A Producer sets it for
	// entities of the feed; of a resource in a snapshot it is when that was last
	// modified, zero for when the snapshot was begun.
	Modified time.Time

	Type string // the media type of Body, as it is written
	Body []byte // as it is sent

	// Header has all header fields of an entity that was received, keys as
	// net/textproto has them. A Producer adds those that it does not set itself.
	Header textproto.MIMEHeader

	Page string // the URL of the page it was on, if it was received

	number int // on that page, from 1
}

// fault says what an entity of a feed lacks (datareplication#feed-4).
func (e *Entity) fault() error {
	switch {
	case e.ContentID == "":
		return ErrNoID
	case e.Operation != Put && e.Operation != Delete && e.Operation != Patch:
		return fmt.Errorf("%w: %q", ErrOperation, clip(string(e.Operation)))
	}
	return nil
}

// received makes an entity of a part (datareplication#feed-4). Of a snapshot it
// is known when that was created; the time is zero for the feed.
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

// A Cursor is a place in a feed: after the entity that it names. It is to be
// stored together with what was done with that entity, so that both are there or
// neither (datareplication#consumer-5). The zero value is the beginning.
type Cursor struct {
	Time time.Time `json:"time,omitzero"` // the stamp of the entity

	// ContentID is that of the entity: what follows it comes exactly once. Without
	// it, everything at or after Time comes, so some of it perhaps again.
	ContentID string `json:"content_id,omitempty"`
}

// IsZero reports whether the cursor is the beginning.
func (c Cursor) IsZero() bool { return c.Time.IsZero() && c.ContentID == "" }
