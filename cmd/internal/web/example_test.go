package web_test

import (
	"context"
	"fmt"
	"log"
	"net"
	"net/http"

	"github.com/feedhistory/feedhistory/cmd/internal/web"
	"github.com/feedhistory/feedhistory/examples/site"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/republish"
)

// A feed is mirrored, and another reader gets its whole history from the mirror.
func ExampleServer() {
	client, publisher, stop := site.Start() // somebody's website
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	store := mirror.NewMemory() // or a store of package sqlstore
	m := &mirror.Mirror{Store: store, Client: client}
	if _, err := m.Update(ctx, publisher+site.Archived); err != nil {
		log.Fatal(err)
	}

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		log.Fatal(err)
	}
	base := "http://" + listener.Addr().String() + "/"
	s := &web.Server{Store: store, Mirror: m, Base: base}
	polls := make(chan error)
	go func() { polls <- s.Run(ctx) }()
	server := &http.Server{Handler: s}
	go func() { _ = server.Serve(listener) }()
	defer server.Close()

	h, err := client.Fetch(ctx, base+"feeds/"+republish.Name(publisher+site.Archived)+"/index.atom")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(h.Head.Title, len(h.Entries), h.Verdict())
	cancel()
	fmt.Println(<-polls)
	// Output:
	// Liftoff News 4 whole
	// <nil>
}
