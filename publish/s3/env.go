package s3

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/feedhistory/feedhistory"
)

// FromEnvironment returns an Output for a URL like s3://bucket/prefix, with the
// settings AWS's own tools read from the environment:
//
//   - AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN; or else
//     the file ~/.aws/credentials (AWS_SHARED_CREDENTIALS_FILE, AWS_PROFILE);
//     or else the role of a web identity or a container, if a variable set by
//     AWS names one;
//   - AWS_REGION or AWS_DEFAULT_REGION; without them AWS is asked for the
//     bucket's region, and other stores get us-east-1;
//   - AWS_ENDPOINT_URL_S3 or AWS_ENDPOINT_URL, if endpoint is "": the URL of a store
//     other than Amazon's.
//
// Without credentials the error matches ErrCredentials. FromEnvironment makes
// no request.
func FromEnvironment(target, endpoint string) (*Output, error) {
	u, err := url.Parse(target)
	if err != nil || u.Scheme != "s3" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("not of the form s3://bucket/prefix") // the URL may contain a password
	}
	keys, err := environmentCredentials()
	if err != nil {
		return nil, err
	}
	endpoint = cmp.Or(endpoint, os.Getenv("AWS_ENDPOINT_URL_S3"), os.Getenv("AWS_ENDPOINT_URL"))
	region := cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	at := &url.URL{Scheme: "https", Host: "s3.amazonaws.com"}
	if endpoint != "" {
		region = cmp.Or(region, "us-east-1")
		at, err = url.Parse(endpoint)
		if err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != "http" || at.User != nil || strings.Trim(at.Path, "/") != "" {
			return nil, errors.New("the endpoint is not of the form https://host")
		}
	}
	transport, err := minio.DefaultTransport(at.Scheme == "https")
	if err != nil {
		return nil, err
	}
	logged := &loggedTransport{next: transport}
	client, err := minio.New(at.Host, &minio.Options{Creds: keys, Secure: at.Scheme == "https", Region: region, Transport: logged})
	if err != nil {
		return nil, err
	}
	client.SetAppInfo("feedhistory", feedhistory.Version)
	o := &Output{Client: client, Bucket: u.Host, Prefix: strings.Trim(u.Path, "/"), HTTP: &http.Client{Transport: logged}}
	logged.of = o
	return o, o.check()
}

// environmentCredentials returns the first credentials it finds.
func environmentCredentials() (*credentials.Credentials, error) {
	sources := []credentials.Provider{&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}}
	for _, name := range []string{"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"} {
		if os.Getenv(name) != "" {
			return credentials.NewChainCredentials(append(sources, &credentials.IAM{})), nil
		}
	}
	keys := credentials.NewChainCredentials(sources)
	if value, err := keys.GetWithContext(nil); err != nil || value.AccessKeyID == "" || value.SecretAccessKey == "" {
		return nil, fmt.Errorf("%w: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE", ErrCredentials)
	}
	return keys, nil
}
