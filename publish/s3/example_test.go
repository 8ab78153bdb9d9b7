package s3_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"time"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"

	"github.com/feedhistory/feedhistory"
	"github.com/feedhistory/feedhistory/compose"
	"github.com/feedhistory/feedhistory/publish"
	"github.com/feedhistory/feedhistory/publish/s3"
)

// A job publishes new entries. Another run of the job may be at work.
func Example() {
	objects := s3mem.New() // a store in memory, in the place of a real one
	if err := objects.CreateBucket(context.Background(), "my-bucket"); err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(objects).Server())
	defer server.Close()
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "secret"} {
		if err := os.Setenv(name, value); err != nil {
			log.Fatal(err)
		}
		defer os.Unsetenv(name)
	}
	out, err := s3.FromEnvironment("s3://my-bucket/blog", server.URL)
	if err != nil {
		log.Fatal(err)
	}
	p := &publish.Publisher{
		Output: out,
		Base:   "https://feeds.example.org/blog/", // where the bucket's blog/ is served
		Head:   &feedhistory.Document{Title: "My blog"},
	}
	entry, err := compose.Draft{
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
	case errors.Is(err, s3.ErrAltered), errors.Is(err, s3.ErrChanged):
		log.Fatal("something between this program and the bucket changes documents: ", err)
	default:
		log.Fatal(err) // it is safe to repeat the call
	}
	// Output: published: https://feeds.example.org/blog/feed.atom
}

// Whoever writes holds the lock.
func ExampleOutput_Lock() {
	ctx, objects := context.Background(), s3mem.New()
	if err := objects.CreateBucket(ctx, "my-bucket"); err != nil {
		log.Fatal(err)
	}
	server := httptest.NewServer(gofakes3.New(objects).Server())
	defer server.Close()
	for name, value := range map[string]string{"AWS_ACCESS_KEY_ID": "me", "AWS_SECRET_ACCESS_KEY": "secret"} {
		if err := os.Setenv(name, value); err != nil {
			log.Fatal(err)
		}
		defer os.Unsetenv(name)
	}
	out, err := s3.FromEnvironment("s3://my-bucket", server.URL)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(errors.Is(out.Put(ctx, "robots.txt", nil), s3.ErrNotLocked))
	unlock, err := out.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(out.Put(ctx, "robots.txt", nil))
	fmt.Println(unlock())
	// Output:
	// true
	// <nil>
	// <nil>
}
