// Package fleet keeps mirrors up to date on many machines. It runs package
// mirror in jobs of River (riverqueue.com) in a PostgreSQL database.
//
//	db, err := fleet.Open(ctx, "postgres://…")
//	db.Subscribe(ctx, urls)
//	w := &fleet.Worker{Database: db}
//	err = w.Run(ctx) // in as many processes, on as many machines, as wanted
//
// # One machine per host
//
// A worker holds the hosts that have feeds which are due, for a time that is longer
// than any of its polls, and makes jobs of many hosts. Whoever runs the job visits each
// host: it polls the feeds one after the other, and writes nothing once another worker
// holds the host. The host of a feed is the host of the address that it is requested
// from. There are two exceptions: if a host redirects to another one, or if archive
// documents are on a different host than the feed, these requests are made in the
// feed's own visit.
//
// # What is written together
//
// Whatever is new in a feed is committed at once. A poll that has found nothing
// new may wait up to five seconds for other polls, of its host and of others.
// Then all of them are written together, provided that the feeds are still at
// the version at which they were polled, and that the worker still holds their
// hosts. If a worker is killed before that, these feeds are polled again.
//
// # What may fail
//
// What a worker has committed stays, and another worker does what it has left
// undone: the hosts that it held are due again, and what a poll has
// read of a feed is in the store (package mirror). A worker that was only
// suspended, and wakes up when another works on its feed, cannot commit: the
// store refuses a change to a state that has changed since
// (mirror.ErrConflict).
//
// A feed whose polls do not end properly, because they panic, end the process,
// take too long or cannot be stored, is tried less and less often. Then it
// becomes a dead letter, with the reason. The other feeds of its host are
// polled meanwhile.
package fleet
