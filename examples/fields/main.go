// Fields prints the authors, categories, files and pictures of the entries of a feed. It is the same program for Atom, RSS and JSON Feed.
//
//	go run ./examples/fields FILE…
package main

import (
	"fmt"
	"io"
	"log"
	"os"
	"strings"

	"github.com/feedhistory/feedhistory"
)

func main() {
	if len(os.Args) < 2 {
		log.Fatal("usage: fields FILE…")
	}
	for _, name := range os.Args[1:] {
		if err := show(os.Stdout, name); err != nil {
			log.Fatal(err)
		}
	}
}

// show prints the entries of a document.
func show(w io.Writer, name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	doc, err := feedhistory.Parse(f, "https://podcast.example/feed")
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%s (%s), %s\n", doc.Title, doc.Language, doc.Rights.Plain())
	for _, e := range doc.Entries {
		page, _ := e.Links.Rel("alternate")
		fmt.Fprintf(w, "%s <%s>\n", e.Title().Plain(), page.Href)
		var names, terms []string
		for _, p := range e.Authors() {
			if p.Inherited {
				p.Name += ", by the feed"
			}
			names = append(names, p.Name)
		}
		for _, c := range e.Categories() {
			terms = append(terms, c.Term)
		}
		fmt.Fprintf(w, "  authors: %s\n  categories: %s\n  image: %s\n", strings.Join(names, "; "), strings.Join(terms, ", "), e.Image())
		for _, file := range e.Enclosures() {
			fmt.Fprintf(w, "  file: %s, %s, %d bytes, %v\n", file.URL, file.Type, file.Length, file.Duration)
		}
	}
	return nil
}
