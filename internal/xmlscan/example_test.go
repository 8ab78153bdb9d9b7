package xmlscan_test

import (
	"fmt"

	"github.com/feedhistory/feedhistory/internal/xmlscan"
)

func ExampleCursor_Child() {
	const atom = "http://www.w3.org/2005/Atom"
	s := xmlscan.New(`<feed xmlns="http://www.w3.org/2005/Atom">
		<entry><title>One</title><id>1</id></entry>
		<entry><id>2</id><title>Two &amp; more</title></entry>
	</feed>`, xmlscan.Limits{})
	s.Child(0)
	for s.Child(1) {
		if !s.Is(atom, "entry") {
			continue
		}
		for s.Child(2) {
			if s.Is(atom, "title") {
				fmt.Println(s.ElementText())
			}
		}
	}
	fmt.Println(s.Err())
	// Output:
	// One
	// Two & more
	// <nil>
}
