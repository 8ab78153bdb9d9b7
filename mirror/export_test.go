package mirror

// DocumentSize returns the size that a document counts for a Quota.
func DocumentSize(d *DocumentRecord) int64 { return d.size() }
