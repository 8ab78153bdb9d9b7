package relay

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/http"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/harvest/datareplication"
	wire "github.com/feedhistory/feedhistory/internal/harvest"
	"github.com/feedhistory/feedhistory/mirror"
	"github.com/feedhistory/feedhistory/publish"
)

// EntryID is the header field that names the entry an entity puts or deletes: its ID. If
// the ID cannot be in a header field, or begins with a quote, it is quoted as in Go.
const EntryID = "Entry-Id"

// A Journal gives out a feed by the data replication protocol. Its pages do not change, so
// it keeps them in an Output, and appends the changes of the mirror when somebody requests
// the newest page. The first entities are the entries there are, each as it is by then; a
// later change of an entry is another entity. All fields but Logger must be set.
type Journal struct {
	Upstream
	Output publish.Output // Output keeps the pages. Without them, consumers must begin again.
	Base   string         // Base is the absolute URL of the handler's root.
	Logger *slog.Logger   // Logger logs failures; nil means no logging.

	mu       sync.Mutex
	producer datareplication.Producer
}

// catchUp is how long a request for the newest page waits for changes to be appended.
const catchUp = 5 * time.Second

// ServeHTTP answers GET and HEAD requests.
func (j *Journal) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.Trim(r.URL.Path, "/") == "" && j.mu.TryLock() {
		err := j.update(r.Context(), time.Now().Add(catchUp))
		j.mu.Unlock()
		if err != nil {
			wire.Fail(w, r, j.Logger, "the journal of "+j.URL+" cannot be continued", err)
			return
		}
	}
	(&datareplication.Handler{FS: j.Output, Base: j.Base, Logger: j.Logger}).ServeHTTP(w, r)
}

// Update appends all changes of the mirror since the last call. Each of its steps is
// durable: after an error, or a kill, the next call goes on. The error is harvest.ErrReplaced
// if the feed was removed from the mirror and added again.
func (j *Journal) Update(ctx context.Context) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.update(ctx, time.Time{})
}

// A batch is appended after this many entities or bytes, at the end of a change.
const (
	batchEntities = 1000
	batchBytes    = 4 << 20
)

// update appends changes until a time; zero means all.
func (j *Journal) update(ctx context.Context, until time.Time) error {
	j.producer.Output = j.Output
	done, err := j.done()
	if err != nil {
		return err
	}
	state, err := j.Store.Feed(ctx, j.URL)
	switch {
	case err != nil:
		return err
	case state.Commits < done:
		return &harvest.Error{Code: harvest.ErrReplaced, URL: j.URL, Text: fmt.Sprintf("the journal has change %d, but the mirror's last is %d: "+
			"the feed was removed and added again; remove the journal, so that consumers begin again", done, state.Commits)}
	case state.Commits == done:
		return nil
	}
	var batch []datareplication.Entity
	size, last := 0, done
	q := mirror.Query{Feed: j.URL, AfterCommit: &done, States: mirror.AllStates}
	for r, err := range j.Store.Entries(ctx, q) {
		if err != nil {
			return err
		}
		if r.LastCommit != last && (len(batch) >= batchEntities || size >= batchBytes) {
			if err := j.producer.Append(ctx, batch...); err != nil {
				return err
			}
			if batch, size = batch[:0], 0; !until.IsZero() && time.Now().After(until) {
				return nil
			}
		}
		last = r.LastCommit
		e, err := entityOf(r)
		if err != nil {
			return err
		}
		batch, size = append(batch, e), size+len(e.Body)
	}
	return j.producer.Append(ctx, batch...)
}

// done returns the last change in the journal: the Content-IDs begin with it.
func (j *Journal) done() (int64, error) {
	last, err := j.producer.Last()
	if err != nil || last.ContentID == "" {
		return 0, err
	}
	change, _, _ := strings.Cut(last.ContentID, ".")
	return strconv.ParseInt(change, 10, 64)
}

// entityOf returns the last change of a record.
func entityOf(r *mirror.Record) (datareplication.Entity, error) {
	sum := sha256.Sum256([]byte(r.ID))
	e := datareplication.Entity{
		ContentID: strconv.FormatInt(r.LastCommit, 10) + "." + hex.EncodeToString(sum[:8]), Operation: datareplication.Delete,
		Header: textproto.MIMEHeader{EntryID: {keyOf(r.ID)}}, Type: entryType,
	}
	if r.State != mirror.Live {
		return e, nil
	}
	entry, err := entryOf(r)
	if err == nil {
		e.Operation, e.Body = datareplication.Put, entry.XML()
	}
	return e, err
}

// keyOf returns an ID as the value of a header field.
func keyOf(id string) string {
	if id == "" || id[0] == '"' || !httpguts.ValidHeaderFieldValue(id) || strings.TrimSpace(id) != id {
		return strconv.QuoteToASCII(id)
	}
	return id
}
