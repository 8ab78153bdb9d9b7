// Package s3 keeps the documents of package publish in an object store: Amazon
// S3, Cloudflare R2, MinIO and others with conditional writes.
//
//	out, err := s3.FromEnvironment("s3://bucket/blog", "")
//	…
//	p := &publish.Publisher{Output: out, Base: "https://feeds.example.org/blog/"}
//	err = p.Append(ctx, entries...)
//
// # The bucket
//
// The documents have the same names, below the prefix, and the same bytes as in a
// directory. Each has its Content-Type and the Cache-Control of publish.Handler: an
// archive with its successor's link is immutable. Everything not for readers is in the
// object ".lock".
//
// # Two publishers, and a killed one
//
// The lock is a lease: the object ".lock", which is replaced with If-Match. Its
// holder renews it while it works. If a holder was killed, its lock becomes
// free when it has not been renewed for Lease, by the store's clock alone.
//
// A change of a document is recorded first: the new bytes go into the lock's object,
// under the condition that nobody else has taken the lock. Then the document is put,
// under the condition that it has not changed. So a writer that was suspended and comes
// back late fails with ErrLost, and the next holder finishes the recorded work of a
// killed writer. New archives are put with If-None-Match. Not every store has a
// conditional DELETE, so its URL is signed for no longer than the lease: the store
// refuses a later request.
//
// At the first Lock, two requests test whether the store honours conditions. If
// it does not, Lock returns ErrConditions.
package s3
