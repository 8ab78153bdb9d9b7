module github.com/feedhistory/feedhistory

go 1.26.0

// Who requires this module gets at least x/net v0.58.0, which gofeed v1.5.0 requires, and the
// x/text, x/crypto and x/sys that x/net requires in turn: they lift an importer's own. By
// itself, this module needs x/net v0.57.0 (GO-2026-5026 with Go 1.26: x/net/idna) and x/text
// v0.39.0 (GO-2026-5970: x/text/unicode/norm). Any x/time/rate works; v0.1.0 is its first
// release. The package jsontext of go-json-experiment reads JSON token by token with places;
// in Go 1.26 the standard library has it only with GOEXPERIMENT=jsonv2. The tokens of its
// encoding/json take three times as long and 35 times the allocations, and pass a name twice.
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
