package feedtime

import "time"

// First returns the first of the times that is not zero; the zero time if all are.
func First(times ...time.Time) time.Time {
	for _, t := range times {
		if !t.IsZero() {
			return t
		}
	}
	return time.Time{}
}
