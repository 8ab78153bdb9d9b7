package s3_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/publish/s3"
)

// A job publishes what is new. Another run of the job may be at work.
func Example() {
	out, err := s3.FromEnvironment("s3://my-bucket/blog", "") // credentials: AWS_ACCESS_KEY_ID, …
	if err != nil {
		log.Fatal(err)
	}
	p := &publish.Publisher{
		Output: out,
		Base:   "https://feeds.example.org/blog/", // where the bucket's blog/ is served
		Head:   &feedhistory.Document{Title: "My blog"},
	}
	entry, err := feedhistory.Draft{
		ID: "urn:example:1", Title: feedhistory.Text{Body: "First"}, Updated: time.Date(2024, 2, 29, 12, 0, 0, 0, time.UTC),
	}.Entry()
	if err != nil {
		log.Fatal(err)
	}
	err = p.Append(context.Background(), entry)
	switch {
	case err == nil:
		fmt.Println("published:", p.URL())
	case errors.Is(err, publish.ErrLocked):
		fmt.Println("another job is publishing; this one will be repeated:", err)
	case errors.Is(err, s3.ErrCredentials), errors.Is(err, s3.ErrBucket), errors.Is(err, s3.ErrConditions):
		log.Fatal("somebody has to change the settings: ", err)
	default:
		log.Fatal(err) // it is safe to repeat the call
	}
}
