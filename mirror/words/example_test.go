package words_test

import (
	"fmt"

	"github.com/feedhistory/feedhistory/mirror/words"
)

func ExampleFields() {
	fmt.Println(words.Fields("Éclairs, more éclairs"))
	// Output: [eclairs more]
}

func ExampleParse() {
	search, err := words.Parse(`eclair -"chocolate eclair" OR choux`, false)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, text := range []string{"Two éclairs", "A chocolate éclair", "Choux pastry"} {
		set := words.Set{Phrases: search.Phrases()}
		set.Add(text)
		fmt.Println(text, search.Match(set.Contains))
	}
	// Output:
	// Two éclairs true
	// A chocolate éclair false
	// Choux pastry true
}
