package harvest

import (
	"fmt"
	"log/slog"
	"net/http"

	"github.com/feedhistory/feedhistory/harvest"
	"github.com/feedhistory/feedhistory/publish/serve"
)

// Begin begins an answer of a producer. It refuses methods other than GET and HEAD, and
// reports whether to go on.
func Begin(w http.ResponseWriter, r *http.Request) bool {
	if !serve.Reads(w, r) {
		return false
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-cache")
	return true
}

// Fail answers that something is wrong here, and logs what, unless the client has gone.
func Fail(w http.ResponseWriter, r *http.Request, log *slog.Logger, message string, err error) {
	if r.Context().Err() != nil {
		return
	}
	http.Error(w, http.StatusText(http.StatusInternalServerError), http.StatusInternalServerError)
	if log != nil {
		log.Error(message, "url", r.URL.String(), "error", err)
	}
}

// OverBudget reports an exceeded limit of a harvest. The command finds the limit in this
// text, because a mirror keeps only the text of a gap.
func OverBudget(url, limit string, most int64, clause string) error {
	return &harvest.Error{
		Code: harvest.ErrBudget, URL: url, Limit: limit, Max: most, Clause: clause,
		Text: fmt.Sprintf("the limit on %s (%d) is exceeded", limit, most),
	}
}
