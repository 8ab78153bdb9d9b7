package datareplication

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	wire "github.com/feedhistory/feedhistory/internal/harvest"
)

// A Handler serves the feed of a Producer. The newest page is at its root, which is the
// feed's URL; page 7 is at "7", and the index of the newest snapshot at "snapshot".
//
//	http.Handle("/feed/", http.StripPrefix("/feed/", &datareplication.Handler{
//		FS: publish.Dir{Path: "feed"}, Base: "https://example.org/feed/",
//	}))
//
// If a page is being written to, the Handler serves it as it was when the
// request came.
type Handler struct {
	FS     fs.FS        // FS has the files the Producer writes.
	Base   string       // Base is the absolute URL of the handler's root.
	Logger *slog.Logger // Logger logs failures to serve; nil means no logging.
}

// ServeHTTP answers GET and HEAD requests (datareplication#feed-1).
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !wire.Begin(w, r) {
		return
	}
	// Files may be removed after the state is read and before they are opened.
	const tries = 5
	var a *answer
	var err error
	for range tries {
		if a, err = h.answer(strings.Trim(r.URL.Path, "/"), r.Method == http.MethodGet); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		wire.Fail(w, r, h.Logger, "a page cannot be served", err)
		return
	}
	defer a.close()
	if err := a.send(w); err != nil {
		if h.Logger != nil && r.Context().Err() == nil {
			h.Logger.Error("a page cannot be served", "url", r.URL.String(), "err", err)
		}
		panic(http.ErrAbortHandler) // tells the client of the incomplete body
	}
}

// An answer is a response to a request.
type answer struct {
	status int
	header [][2]string
	length int64
	body   []io.Reader
	files  []fs.File
}

func (a *answer) add(name, value string) { a.header = append(a.header, [2]string{name, value}) }

func (a *answer) close() {
	for _, f := range a.files {
		_ = f.Close()
	}
}

func (a *answer) send(w http.ResponseWriter) error {
	for _, field := range a.header {
		w.Header().Add(field[0], field[1])
	}
	if a.length > 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(a.length, 10))
	}
	w.WriteHeader(a.status)
	if len(a.body) == 0 {
		return nil
	}
	n, err := io.Copy(w, io.MultiReader(a.body...))
	if err == nil && n != a.length {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// answer returns the response for a name. If the error matches fs.ErrNotExist, a file
// is gone that existed a moment ago.
func (h *Handler) answer(name string, body bool) (*answer, error) {
	if h.FS == nil {
		return nil, errors.New("datareplication: Handler.FS must be set")
	}
	s, err := loadState(h.FS)
	if err != nil {
		return nil, err
	}
	switch {
	case name == "" && s.Newest == nil:
		return &answer{status: http.StatusNoContent}, nil
	case name == "":
		return h.page(s, s.Newest.Number, body)
	case name == "snapshot":
		return h.index(s, body)
	}
	if rest, ok := strings.CutPrefix(name, "snapshots/"); ok {
		return h.snapshotPage(s, rest, body)
	}
	number, err := strconv.Atoi(name)
	switch {
	case err != nil || strconv.Itoa(number) != name || number < 1:
		return h.none(http.StatusNotFound), nil
	case number < s.Oldest:
		return h.none(http.StatusGone), nil // datareplication#feed-6
	case s.Newest == nil || number > s.Newest.Number:
		return h.none(http.StatusNotFound), nil
	}
	return h.page(s, number, body)
}

// none returns the response for an unknown name.
func (h *Handler) none(status int) *answer {
	a := &answer{status: status}
	a.add("Content-Type", "text/plain; charset=utf-8")
	return a
}

// url returns the URL at which the handler serves a name.
func (h *Handler) url(name string) string { return strings.TrimSuffix(h.Base, "/") + "/" + name }

// page answers with a page of the feed (datareplication#feed-2).
func (h *Handler) page(s *state, number int, body bool) (*answer, error) {
	page, err := s.page(h.FS, number)
	if err != nil {
		return nil, err
	}
	a := new(answer)
	link := func(number int, rel string) {
		a.add("Link", "<"+h.url(strconv.Itoa(number))+">; rel="+rel)
	}
	link(number, "self")
	if number > s.Oldest {
		link(number-1, "prev")
	}
	if number < s.Newest.Number {
		link(number+1, "next")
	}
	return a, h.entities(a, page, body)
}

// snapshotPage answers with a page of a snapshot, "id/number".
func (h *Handler) snapshotPage(s *state, name string, body bool) (*answer, error) {
	id, number, _ := strings.Cut(name, "/")
	n, err := strconv.Atoi(number)
	for _, snap := range s.Snapshots {
		if err != nil || snap.ID != id || strconv.Itoa(n) != number || n < 1 || n > snap.Pages {
			continue
		}
		page, err := loadSheet(h.FS, snapshotStem(id, n))
		if err != nil {
			return nil, err
		}
		a := new(answer)
		a.add("Link", "<"+h.url("snapshots/"+name)+">; rel=self")
		return a, h.entities(a, page, body)
	}
	return h.none(http.StatusNotFound), nil
}

// entities adds a page's entities to an answer.
func (h *Handler) entities(a *answer, page *sheet, body bool) (err error) {
	a.status, a.length = http.StatusOK, page.bytes()+int64(len(page.ending()))
	a.add("Content-Type", "multipart/mixed; boundary="+page.Boundary)
	a.add("Last-Modified", page.Modified.UTC().Format(http.TimeFormat))
	if !body {
		return nil
	}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	for _, piece := range page.Parts {
		f, err := h.FS.Open(piece.Name)
		if err != nil {
			return err
		}
		a.files = append(a.files, f)
		a.body = append(a.body, io.LimitReader(f, piece.Size))
	}
	a.body = append(a.body, strings.NewReader(page.ending()))
	return nil
}

// index answers with the index of the newest snapshot
// (datareplication#snapshot-1).
func (h *Handler) index(s *state, body bool) (*answer, error) {
	if len(s.Snapshots) == 0 {
		return h.none(http.StatusNotFound), nil
	}
	snap := s.Snapshots[len(s.Snapshots)-1]
	i := index{ID: snap.ID, CreatedAt: snap.Created.UTC().Format(time.RFC3339), Pages: []string{}}
	for n := range snap.Pages {
		i.Pages = append(i.Pages, h.url("snapshots/"+snap.ID+"/"+strconv.Itoa(n+1)))
	}
	data, err := json.Marshal(i)
	if err != nil {
		return nil, err
	}
	a := &answer{status: http.StatusOK, length: int64(len(data))}
	a.add("Content-Type", "application/json")
	a.add("Last-Modified", snap.Created.UTC().Format(http.TimeFormat))
	if body {
		a.body = []io.Reader{bytes.NewReader(data)}
	}
	return a, nil
}
