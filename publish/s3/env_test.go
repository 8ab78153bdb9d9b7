package s3_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/publish/s3"
)

// clearEnvironment unsets all variables that FromEnvironment reads.
func clearEnvironment(t *testing.T) {
	for _, name := range []string{
		"AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE",
		"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI",
	} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
}

func TestFromEnvironment(t *testing.T) {
	clearEnvironment(t)
	_, err := s3.FromEnvironment("s3://bucket", "")
	require.ErrorIs(t, err, s3.ErrCredentials)
	t.Setenv("AWS_ACCESS_KEY_ID", "an-id")
	_, err = s3.FromEnvironment("s3://bucket", "")
	require.ErrorIs(t, err, s3.ErrCredentials)
	t.Setenv("AWS_SECRET_ACCESS_KEY", "hush")

	for _, test := range []struct {
		target, endpoint   string
		env                map[string]string
		bucket, prefix, at string
	}{
		{"s3://bucket", "", nil, "bucket", "", "https://s3.amazonaws.com"},
		{"s3://bucket/", "", nil, "bucket", "", "https://s3.amazonaws.com"},
		{"s3://my.bucket/a/b/", "", nil, "my.bucket", "a/b", "https://s3.amazonaws.com"},
		{"s3://bucket/a", "http://127.0.0.1:9000", nil, "bucket", "a", "http://127.0.0.1:9000"},
		{"s3://bucket/a", "https://store.example.org/", nil, "bucket", "a", "https://store.example.org"},
		{"s3://bucket/a", "", map[string]string{"AWS_ENDPOINT_URL": "https://one.example.org"}, "bucket", "a", "https://one.example.org"},
		{"s3://bucket/a", "", map[string]string{
			"AWS_ENDPOINT_URL": "https://one.example.org", "AWS_ENDPOINT_URL_S3": "https://two.example.org",
		}, "bucket", "a", "https://two.example.org"},
		{"s3://bucket/a", "https://three.example.org", map[string]string{"AWS_ENDPOINT_URL_S3": "https://two.example.org"}, "bucket", "a", "https://three.example.org"},
	} {
		t.Run(test.target+" "+test.endpoint, func(t *testing.T) {
			for name, value := range test.env {
				t.Setenv(name, value)
			}
			out, err := s3.FromEnvironment(test.target, test.endpoint)
			require.NoError(t, err)
			require.Equal(t, test.bucket, out.Bucket)
			require.Equal(t, test.prefix, out.Prefix)
			require.Equal(t, test.at, out.Client.EndpointURL().String())
		})
	}
	for _, target := range []string{"", "bucket", "s3:", "s3://", "s3:///x", "https://bucket/x", "s3://an-id:hush@bucket/x", "s3://bucket/x?y", "s3://bucket/x#y", "s3://bucket/../x", "s3://bucket/a//b"} {
		_, err := s3.FromEnvironment(target, "")
		require.Error(t, err, target)
		require.NotContains(t, err.Error(), "hush")
	}
	for _, endpoint := range []string{"store.example.org", "ftp://store.example.org", "https://", "https://an-id:hush@store.example.org", "https://store.example.org/path", "https://a b:hush"} {
		_, err := s3.FromEnvironment("s3://bucket", endpoint)
		require.Error(t, err, endpoint)
		require.NotContains(t, err.Error(), "hush")
	}
}

// TestFromFile checks that the credentials of a profile are used, and that the
// store accepts them.
func TestFromFile(t *testing.T) {
	clearEnvironment(t)
	file := filepath.Join(t.TempDir(), "credentials")
	require.NoError(t, os.WriteFile(file, []byte("[blog]\naws_access_key_id = key\naws_secret_access_key = secret\n"), 0o600))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", file)
	_, err := s3.FromEnvironment("s3://"+bucket, "")
	require.ErrorIs(t, err, s3.ErrCredentials, "there is no profile called default")
	t.Setenv("AWS_PROFILE", "blog")
	out, err := s3.FromEnvironment("s3://"+bucket+"/"+prefix, newStore(t).URL)
	require.NoError(t, err)
	require.NoError(t, newPublisher(out).Append(t.Context(), entries(t, 1, 4)...))
	requireEntries(t, out, 4)
}
