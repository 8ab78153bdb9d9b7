// Package datareplication keeps copies of data up to date over HTTP. A feed is a log of
// entities, in pages linked to one another. Each entity puts, patches or deletes a
// resource. The package has both sides.
//
// A Harvester reads a feed from where it last stopped:
//
//	h := datareplication.Harvester{URL: "https://example.org/feed/"}
//	harvest := h.Harvest(ctx, mark) // the zero Mark at first
//	for e, err := range harvest.Entities() {
//		if err != nil {
//			return err
//		}
//		… // e.Operation, e.Body; and store harvest.Mark() with that
//	}
//
// A Producer writes a feed to a publish.Output, and a Handler serves it:
//
//	p := &datareplication.Producer{Output: publish.Dir{Path: "feed"}}
//	err := p.Append(ctx, datareplication.Entity{ContentID: "1", Type: "application/json", Body: body})
//	http.Handle("/feed/", http.StripPrefix("/feed/", &datareplication.Handler{
//		FS: p.Output, Base: "https://example.org/feed/",
//	}))
//
// The README lists the duties of both sides; comments and errors cite them as
// datareplication#consumer-3.
package datareplication
