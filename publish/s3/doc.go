// Package s3 keeps what package publish publishes in an object store: Amazon S3,
// Cloudflare R2, MinIO and others that know conditional writes.
//
//	out, err := s3.FromEnvironment("s3://bucket/blog", "")
//	…
//	p := &publish.Publisher{Output: out, Base: "https://feeds.example.org/blog/"}
//	err = p.Append(entries...)
//
// # What is in the bucket
//
// The documents have the names that they have in a directory, below the prefix,
// and the same bytes. Each has its Content-Type, and the Cache-Control that
// publish.Handler gives it: an archive that has its successor's link is immutable.
// The object ".lock" has everything that is not for readers.
//
// # Two publishers, and one that is killed
//
// The lock is a lease: the object ".lock", replaced with If-Match. Its holder
// renews it while it works. The lock of one that was killed is free for others
// when it has not been renewed for Lease, by the store's clock alone.
//
// Whatever replaces a document is decided first: its bytes go into the lock's
// object, under the condition that nobody else has taken the lock. Then it is put,
// under the condition that the document is as it was. So a writer that stood still
// and comes back late fails with ErrLost, and what one that was killed has decided,
// the next holder carries out. New archives are put with If-None-Match, and what
// is removed is removed just after the lease has been renewed, as no condition for
// that is known to all stores: it is the only request that a late writer could
// still have under way, if it stands still for the whole lease between the two.
//
// Two requests at the first Lock prove that the store honours conditions; if it
// does not, Lock returns ErrConditions.
package s3
