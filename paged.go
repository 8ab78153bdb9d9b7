package feedhistory

// Paged feeds, RFC 5005 §3: a series of pages whose contents may change while they
// are read. A history of pages is never presented as whole (5005#4).

// isPaged reports whether the document is a page, by the links a page must have
// (5005#5).
func (d *Document) isPaged() bool {
	return d.Links.has(relFirst, relLast) || d.says(relPrevious, relNext)
}
