package atompmh

import (
	"slices"
	"time"

	"github.com/feedhistory/feedhistory"
)

// A keepState is the Mark of the last whole harvest, with the place of a later,
// interrupted one.
type keepState struct {
	Mark
	Pieces []piece           `json:"pieces,omitempty"` // parts of the chain still to read
	Newest time.Time         `json:"newest,omitzero"`  // newest time of all entries in the parts read
	Top    feedhistory.Known `json:"top,omitzero"`     // the subscription document of the interrupted harvest
}

// A piece is a part of the chain: from one document to the first one older than a time.
type piece struct {
	Next  string    `json:"next"`
	Until time.Time `json:"until,omitzero"` // zero: to the end of the chain
	Once  bool      `json:"once,omitempty"` // only the one document, which was damaged
}

// top returns the mark for the newest part of the chain.
func (s *keepState) top() Mark {
	if len(s.Pieces) == 0 {
		return s.Mark
	}
	return Mark{Time: s.Newest, Subscription: s.Top}
}

// advance moves the current part from one address to the next; "" is its end. Where
// it meets another part, they become one, which reaches as far back as either. The
// parts stay in the order of the chain, newest first, because a walk never goes back
// to a document it has read.
func (k *keeper) advance(was, next string) {
	at := max(0, slices.IndexFunc(k.state.Pieces, func(p piece) bool { return p.Next == was }))
	k.state.Pieces = slices.DeleteFunc(k.state.Pieces, func(p piece) bool { return p.Next == was })
	if k.current.Next = next; next == "" {
		return
	}
	i := slices.IndexFunc(k.state.Pieces, func(p piece) bool { return p.Next == next })
	if i < 0 {
		k.state.Pieces = slices.Insert(k.state.Pieces, min(at, len(k.state.Pieces)), k.current)
		return
	}
	if p := &k.state.Pieces[i]; k.current.Until.Before(p.Until) {
		p.Until = k.current.Until
	}
	k.state.Pieces[i].Once = false
}

// stopAt keeps the walk from going beyond a document, unless a part still to read
// begins there.
func (k *keeper) stopAt(older string) {
	begins := slices.ContainsFunc(k.state.Pieces, func(p piece) bool { return p.Next == older })
	if older != "" && !begins {
		k.ended[older] = true
	}
}
