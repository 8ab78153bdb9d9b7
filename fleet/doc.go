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
// A worker holds the hosts with due feeds, for longer than any of its polls, and makes
// jobs of many hosts. Whoever runs the job visits each host: it polls the feeds one
// after the other, and writes nothing once another worker holds the host. The host of a
// feed is the host of the address it is requested from. There are two exceptions: if a
// host redirects to another one, or if archive documents are on a different host than
// the feed, these requests are made in the feed's own visit.
//
// # Group commits
//
// News of a feed are committed at once. A poll without news may wait up to five seconds
// for other polls, of its host and of others. Then all of them are written together,
// provided the feeds have had no other commit since they were polled, and the worker
// still holds their hosts. If a worker is killed before that, these feeds are polled
// again.
//
// # Failures
//
// A worker's commits stay, and another worker does the rest: the hosts it held are due again, and
// everything a poll has read is in the store (package mirror). A worker that was only suspended,
// and wakes up when another works on its feed, cannot commit: the store refuses a change to a
// state that has changed since (mirror.ErrConflict).
//
// A feed whose polls do not end properly, because they panic, end the process,
// take too long or cannot be stored, is tried less and less often. Then it
// becomes a dead letter, with the reason. The other feeds of its host are
// polled meanwhile.
package fleet
