package sqlstore

// SetReach has searches choose another way sooner than they usually do.
func (s *Store) SetReach(few, first, last, bytes, steps int) {
	s.reach = reach{few: few, first: first, last: last, bytes: bytes, steps: steps}
}
