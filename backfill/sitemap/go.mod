module github.com/feedhistory/feedhistory/backfill/sitemap

go 1.26.0

require (
	codeberg.org/readeck/go-readability/v2 v2.1.3
	github.com/feedhistory/feedhistory v0.2.0
	github.com/stretchr/testify v1.12.1
	github.com/temoto/robotstxt v1.1.2
	golang.org/x/net v0.58.0
)

require (
	code.dny.dev/ssrf v0.3.0 // indirect
	github.com/andybalholm/cascadia v1.3.3 // indirect
	github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
	github.com/go-shiori/dom v0.0.0-20230515143342-73569d674e1c // indirect
	github.com/gogs/chardet v0.0.0-20211120154057-b7413eaefb8f // indirect
	github.com/itlightning/dateparse v0.2.1 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
	go.uber.org/goleak v1.3.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/text v0.41.0 // indirect
	golang.org/x/time v0.1.0 // indirect
	pgregory.net/rapid v1.3.0 // indirect
)
