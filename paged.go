package feedhistory

// Paged feeds, RFC 5005 §3: a series of pages whose contents may change while
// they are read. What comes of one is never presented as whole (5005#4).

// isPaged recognises a document by the links that it must have (5005#5).
func (d *Document) isPaged() bool {
	return d.Links.has(RelFirst, RelLast, RelPrevious, RelNext)
}
