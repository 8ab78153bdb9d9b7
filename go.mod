module github.com/feedhistory/feedhistory

go 1.26.0

require (
	code.dny.dev/ssrf v0.3.0
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875
	github.com/klauspost/compress v1.20.3
	github.com/mmcdole/gofeed v1.5.0
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
	golang.org/x/net v0.58.0
	golang.org/x/text v0.41.0
	golang.org/x/time v0.5.0
	pgregory.net/rapid v1.3.0
)

require (
	github.com/mmcdole/goxpp/v2 v2.0.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
