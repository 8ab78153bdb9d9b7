module github.com/feedhistory/feedhistory/publish/s3

go 1.26.0

require github.com/feedhistory/feedhistory v0.2.0

require (
	github.com/minio/minio-go/v7 v7.4.1
	github.com/rclone/gofakes3 v0.0.12
	github.com/stretchr/testify v1.12.1
)
