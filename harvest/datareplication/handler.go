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
	var err error
	for range tries {
		if err = h.answer(w, r, strings.Trim(r.URL.Path, "/")); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if err != nil {
		wire.Fail(w, r, h.Logger, "a page cannot be served", err)
	}
}

// answer answers a request for a name. After an error, nothing is written yet; if it matches
// fs.ErrNotExist, a file is gone that existed a moment ago.
func (h *Handler) answer(w http.ResponseWriter, r *http.Request, name string) error {
	if h.FS == nil {
		return errors.New("datareplication: Handler.FS must be set")
	}
	s, err := loadState(h.FS)
	if err != nil {
		return err
	}
	rest, inSnapshot := strings.CutPrefix(name, "snapshots/")
	number, err := strconv.Atoi(name)
	switch {
	case name == "" && s.Newest == nil:
		w.WriteHeader(http.StatusNoContent)
	case name == "":
		return h.page(w, r, s, s.Newest.Number)
	case name == "snapshot":
		return h.index(w, r, s)
	case inSnapshot:
		return h.snapshotPage(w, r, s, rest)
	case err != nil || strconv.Itoa(number) != name || number < 1:
		none(w, http.StatusNotFound)
	case number < s.Oldest:
		none(w, http.StatusGone) // datareplication#feed-6
	case s.Newest == nil || number > s.Newest.Number:
		none(w, http.StatusNotFound)
	default:
		return h.page(w, r, s, number)
	}
	return nil
}

// none answers that there is nothing of this name.
func none(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
}

// url returns the URL at which the handler serves a name.
func (h *Handler) url(name string) string { return strings.TrimSuffix(h.Base, "/") + "/" + name }

// link returns the value of a header field Link.
func (h *Handler) link(name, rel string) string { return "<" + h.url(name) + ">; rel=" + rel }

// page answers with a page of the feed (datareplication#feed-2).
func (h *Handler) page(w http.ResponseWriter, r *http.Request, s *state, number int) error {
	page, err := s.page(h.FS, number)
	if err != nil {
		return err
	}
	links := []string{h.link(strconv.Itoa(number), "self")}
	if number > s.Oldest {
		links = append(links, h.link(strconv.Itoa(number-1), "prev"))
	}
	if number < s.Newest.Number {
		links = append(links, h.link(strconv.Itoa(number+1), "next"))
	}
	return h.entities(w, r, page, links)
}

// snapshotPage answers with a page of a snapshot, "id/number".
func (h *Handler) snapshotPage(w http.ResponseWriter, r *http.Request, s *state, name string) error {
	id, number, _ := strings.Cut(name, "/")
	n, err := strconv.Atoi(number)
	for _, snap := range s.Snapshots {
		if err != nil || snap.ID != id || strconv.Itoa(n) != number || n < 1 || n > snap.Pages {
			continue
		}
		page, err := loadSheet(h.FS, snapshotStem(id, n))
		if err != nil {
			return err
		}
		return h.entities(w, r, page, []string{h.link("snapshots/"+name, "self")})
	}
	none(w, http.StatusNotFound)
	return nil
}

// entities answers with the entities of a page.
func (h *Handler) entities(w http.ResponseWriter, r *http.Request, page *sheet, links []string) error {
	var body []io.Reader
	for _, piece := range page.Parts {
		if r.Method == http.MethodHead {
			break
		}
		f, err := h.FS.Open(piece.Name)
		if err != nil {
			return err
		}
		defer f.Close()
		body = append(body, io.LimitReader(f, piece.Size))
	}
	body = append(body, strings.NewReader(page.ending()))
	w.Header()[wire.FieldLink] = links
	w.Header().Set(wire.FieldType, "multipart/mixed; boundary="+page.Boundary)
	h.send(w, r, page.Modified, page.bytes()+int64(len(page.ending())), io.MultiReader(body...))
	return nil
}

// send sends an answer with a body of a known length.
func (h *Handler) send(w http.ResponseWriter, r *http.Request, modified time.Time, length int64, body io.Reader) {
	w.Header().Set(wire.FieldModified, modified.UTC().Format(http.TimeFormat))
	w.Header().Set("Content-Length", strconv.FormatInt(length, 10))
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return
	}
	n, err := io.Copy(w, body)
	if err == nil && n != length {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		return
	}
	if h.Logger != nil && r.Context().Err() == nil {
		h.Logger.Error("a page cannot be served", "url", r.URL.String(), "error", err)
	}
	panic(http.ErrAbortHandler) // tells the client of the incomplete body
}

// index answers with the index of the newest snapshot
// (datareplication#snapshot-1).
func (h *Handler) index(w http.ResponseWriter, r *http.Request, s *state) error {
	if len(s.Snapshots) == 0 {
		none(w, http.StatusNotFound)
		return nil
	}
	snap := s.Snapshots[len(s.Snapshots)-1]
	i := wire.Index{ID: snap.ID, CreatedAt: snap.Created.UTC().Format(time.RFC3339), Pages: []string{}}
	for n := range snap.Pages {
		i.Pages = append(i.Pages, h.url("snapshots/"+snap.ID+"/"+strconv.Itoa(n+1)))
	}
	data, err := json.Marshal(i)
	if err != nil {
		return err
	}
	w.Header().Set(wire.FieldType, "application/json")
	h.send(w, r, snap.Created, int64(len(data)), bytes.NewReader(data))
	return nil
}
