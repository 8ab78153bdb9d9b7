package sqlstore

// SetReach makes searches change their method sooner.
func (s *Store) SetReach(few, first, last, bytes, steps int) {
	s.reach = reach{few: few, first: first, last: last, bytes: bytes, steps: steps}
}

// SchemaQuery lists the parts of the schema in a SQLite file.
const SchemaQuery = schemaQuery
