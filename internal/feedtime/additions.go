package feedtime

import (
	"fmt"
	"strings"
	"time"
)

// Readers that follow no archives know only the subscription document. It shows
// at least LeastShown entries, and all that the latest updates or hours added, as
// far as these fit.
const (
	LeastShown    = 20
	RecentUpdates = 10
	RecentTime    = 72 * time.Hour
	MostShown     = 2 << 20 // bytes of entries beyond the minimum
)

// Additions counts the entries that recent updates have added, oldest first.
// Updates within the same hour share an Addition, except the latest ones, so
// there are few.
type Additions []Addition

// An Addition is the entries that an update has added.
type Addition struct {
	Update  int64     `json:"poll"` // the number of the update
	At      time.Time `json:"at"`
	Entries int       `json:"entries"`
}

// Begin returns the Additions that are still recent, and one without entries for
// an update that begins.
func (a Additions) Begin(update int64, now time.Time) Additions {
	var recent Additions
	for _, old := range a {
		latest := update-old.Update < RecentUpdates
		if old.Entries == 0 || !latest && now.Sub(old.At) >= RecentTime {
			continue
		}
		if n := len(recent) - 1; !latest && n >= 0 && recent[n].At.Truncate(time.Hour).Equal(old.At.Truncate(time.Hour)) {
			old.Entries += recent[n].Entries
			recent = recent[:n]
		}
		recent = append(recent, old)
	}
	return append(recent, Addition{Update: update, At: now.UTC().Truncate(time.Second)})
}

// Add counts entries for the update that began last.
func (a Additions) Add(n int) { a[len(a)-1].Entries += n }

// Next returns the number of the next update.
func (a Additions) Next() int64 {
	if len(a) == 0 {
		return 1
	}
	return a[len(a)-1].Update + 1
}

// Entries returns the number of entries.
func (a Additions) Entries() (n int) {
	for _, one := range a {
		n += one.Entries
	}
	return n
}

// String returns the Additions as a text without spaces, for ParseAdditions.
func (a Additions) String() string {
	var parts []string
	for _, one := range a {
		parts = append(parts, fmt.Sprintf("%d@%d:%d", one.Update, one.At.Unix(), one.Entries))
	}
	return strings.Join(parts, ",")
}

// ParseAdditions reads the text that String returns.
func ParseAdditions(text string) (a Additions, err error) {
	for part := range strings.SplitSeq(text, ",") {
		var one Addition
		var seconds int64
		if _, err := fmt.Sscanf(part, "%d@%d:%d", &one.Update, &seconds, &one.Entries); err != nil || one.Entries < 0 {
			return nil, fmt.Errorf("not a number of entries: %q", part)
		}
		one.At = time.Unix(seconds, 0).UTC()
		a = append(a, one)
	}
	if a.String() != text { // Sscanf ignores the rest of a part
		return nil, fmt.Errorf("not numbers of entries: %q", text)
	}
	return a, nil
}
