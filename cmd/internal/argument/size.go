package argument

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/feedhistory/feedhistory/cmd/internal/terminal"
)

// A Size is a number of bytes. On the command line it looks like 500, 10MB or 1.5GiB.
type Size int64

var units = map[string]float64{
	"": 1, "b": 1,
	"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12,
	"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
	"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
}

// Decode reads a size from the command line.
func (s *Size) Decode(ctx *kong.DecodeContext) error {
	var text string
	if err := ctx.Scan.PopValueInto("size", &text); err != nil {
		return err
	}
	var err error
	*s, err = parseSize(text)
	return err
}

func parseSize(text string) (Size, error) {
	number := strings.TrimRight(text, "bBkKmMgGtTiI ")
	unit, ok := units[strings.ToLower(strings.TrimSpace(text[len(number):]))]
	n, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || math.IsNaN(n) || n < 0 {
		return 0, fmt.Errorf("%q is not a size such as 500kB, 10MB or 1GiB", text)
	}
	if n *= unit; n >= math.MaxInt64 {
		return 0, fmt.Errorf("%q is too large", text)
	}
	return Size(n), nil
}

// SizeText returns a size for people, such as 16 MiB.
func SizeText(n int64) string {
	for _, unit := range []struct {
		Size int64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}, {1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}} {
		if n >= unit.Size && n%unit.Size == 0 {
			return fmt.Sprintf("%d %s", n/unit.Size, unit.name)
		}
	}
	return terminal.Count(int(n), "byte", "bytes")
}
