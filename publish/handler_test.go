package publish

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/feedhistory/feedhistory/internal/feedtest"
)

var updateHandler = flag.Bool("update.handler", false, "write what handlers answer into testdata/handler")

// Each text file contains documents, whose names begin with a slash, and
// requests with their responses.
func TestHandler(t *testing.T) {
	names := feedtest.Glob(t, "testdata/handler/*.txtar")
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) { testHandlerFile(t, name) })
	}
}

func testHandlerFile(t *testing.T, name string) {
	text := feedtest.ReadFile(t, name)
	archive := feedtest.Parse(string(text))
	talk := &conversation{handler: &Handler{FS: handlerDocuments(archive)}}
	for _, f := range archive.Files {
		if strings.HasPrefix(f.Name, "/") {
			continue
		}
		request, want, _ := strings.Cut(f.Data, "\n\n")
		got := talk.ask(t, request)
		if *updateHandler {
			archive.Set(f.Name, request+"\n\n"+got+"\n")
		} else {
			assert.Equal(t, strings.TrimSpace(want), strings.TrimSpace(got), f.Name)
		}
	}
	if *updateHandler {
		require.NoError(t, os.WriteFile(name, []byte(archive.String()), 0o644))
	}
}

func handlerDocuments(a *feedtest.Archive) fs.FS {
	files := fstest.MapFS{}
	for _, f := range a.Files {
		if name, ok := strings.CutPrefix(f.Name, "/"); ok {
			files[name] = &fstest.MapFile{Data: []byte(f.Data), ModTime: time.Date(2003, 12, 13, 18, 30, 2, 0, time.UTC)}
		}
	}
	return files
}

// A conversation is a sequence of requests and responses as text. The ETags of
// compressed documents depend on the compressor, so they have names in it.
type conversation struct {
	handler http.Handler
	names   []string // ETags and their names, alternating
}

var encoded = regexp.MustCompile(`(?m)^Content-Encoding: gzip$`)

func (c *conversation) ask(t *testing.T, request string) string {
	t.Helper()
	reverse := make([]string, 0, len(c.names))
	for i := 0; i < len(c.names); i += 2 {
		reverse = append(reverse, c.names[i+1], c.names[i])
	}
	request = strings.NewReplacer(reverse...).Replace(request)
	text := strings.ReplaceAll(request, "\n", "\r\n") + "\r\nHost: example.org\r\n\r\n"
	req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	require.NoError(t, err, request)
	w := httptest.NewRecorder()
	c.handler.ServeHTTP(w, req)
	if tag := w.Header().Get("Etag"); w.Header().Get("Content-Encoding") == "gzip" && w.Code == http.StatusOK {
		c.names = append(c.names, tag, fmt.Sprintf(`"gzip-of-%s"`, strings.TrimPrefix(req.URL.Path, "/")))
	}
	answer := responseText(w)
	if encoded.MatchString(answer) {
		answer = regexp.MustCompile(`(?m)^Content-Length: \d+$`).ReplaceAllString(answer, "Content-Length: (fewer)")
	}
	return strings.NewReplacer(c.names...).Replace(answer)
}

// responseText returns a response's head, and as much of its body as can be
// read at once.
func responseText(w *httptest.ResponseRecorder) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%d %s\n", w.Code, http.StatusText(w.Code))
	head := bytes.Buffer{}
	_ = w.Header().Write(&head)
	b.WriteString(strings.ReplaceAll(head.String(), "\r\n", "\n"))
	switch body := w.Body.String(); {
	case w.Header().Get("Content-Encoding") == "gzip" && body != "":
		b.WriteString("\n(gzip)\n")
	case len(body) > 80:
		fmt.Fprintf(&b, "\n%s…\n", strings.TrimSpace(body[:60]))
	case body != "":
		fmt.Fprintf(&b, "\n%s\n", strings.TrimSpace(body))
	}
	return b.String()
}
