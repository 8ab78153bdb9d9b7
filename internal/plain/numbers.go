package plain

import "fmt"

// A Number is a setting that may not be negative.
type Number struct {
	Name  string // Name is the field, with its type, such as "Handler.Size".
	Value int64
}

// Check returns an error naming the first negative number of a package's settings.
func Check(pkg string, numbers ...Number) error {
	for _, n := range numbers {
		if n.Value < 0 {
			return fmt.Errorf("%s: %s is negative", pkg, n.Name)
		}
	}
	return nil
}
