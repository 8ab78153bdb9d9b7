package mirror

// DocumentSize is what a document counts for a Quota.
func DocumentSize(d *Document) int64 { return d.size() }
