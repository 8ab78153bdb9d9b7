package atompmh

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/feedhistory/feedhistory"
)

// Entry returns the entry of the item: an active entry, or a deletion entry. The error is a
// *RecordError.
func (it Item) Entry() (*feedhistory.Entry, error) {
	if !isTime(it.Modified) {
		return nil, it.refused("atom-pmh#11", "it has no last modified time that can be written")
	}
	d := feedhistory.Draft{
		ID: it.ID, Updated: it.Modified.UTC(),
		Title: feedhistory.Text{Type: feedhistory.TextPlain, Body: it.Title},
	}
	if it.Deleted {
		d.Content.Type = feedhistory.TextPlain // which is empty, and so not left out (atom-pmh#26)
	} else if err := it.link(&d); err != nil {
		return nil, err
	}
	e, err := d.Entry()
	if err != nil {
		return nil, it.refused("atom-pmh#3", err.Error())
	}
	if e.ID != it.ID || !slices.Equal(e.Links, d.Links) {
		return nil, it.refused("atom-pmh#3", "readers would not read it as given")
	}
	return e, nil
}

// link adds links to the representations.
func (it Item) link(d *feedhistory.Draft) error {
	if len(it.Representations) == 0 {
		return it.refused("atom-pmh#15", "it has no representation")
	}
	for _, r := range it.Representations {
		if u, err := url.Parse(r.URL); err != nil || !u.IsAbs() {
			return it.refused("atom-pmh#15", fmt.Sprintf("not an absolute URL: %q", r.URL))
		}
		if t, err := readRange(r.Type); err != nil || t.kind == "*" || t.sub == "*" {
			return it.refused("atom-pmh#15", fmt.Sprintf("not a media type: %q", r.Type))
		}
		d.Links = append(d.Links, feedhistory.Link{Rel: feedhistory.RelAlternate, Href: r.URL, Type: r.Type})
	}
	return nil
}

func (it Item) refused(clause, why string) error {
	return &RecordError{ID: it.ID, Modified: it.Modified, Clause: clause, Err: fmt.Errorf("%w: %s", ErrRecord, why)}
}
