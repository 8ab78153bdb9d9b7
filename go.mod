module github.com/feedhistory/feedhistory

go 1.26.0

// The versions of x/* are the lowest that work, so that a reader's own go.mod is not forced
// up, and have no known vulnerability: gofeed v1.5.0 requires x/net v0.58.0, and this
// requires x/text v0.41.0. By themselves v0.57.0 (GO-2026-5026 with Go 1.26: x/net/idna) and
// v0.39.0 (GO-2026-5970: x/text/unicode/norm) would do. Any x/time/rate works; v0.1.0 is its
// first release.
require (
	code.dny.dev/ssrf v0.3.0
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875
	github.com/klauspost/compress v1.20.3
	github.com/mmcdole/gofeed v1.5.0
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
	golang.org/x/net v0.58.0
	golang.org/x/text v0.41.0
	golang.org/x/time v0.1.0
	pgregory.net/rapid v1.3.0
)

require (
	github.com/mmcdole/goxpp/v2 v2.0.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
