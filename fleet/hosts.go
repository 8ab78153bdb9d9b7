package fleet

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
)

// A visitJob is the job of visiting hosts due together, which a worker holds for
// whoever runs the job. fleet_hosts says everything else.
type visitJob struct {
	Token    int64    `json:"token"` // of the holds
	Hosts    []string `json:"hosts"`
	Doubtful []string `json:"doubtful,omitempty"` // hosts whose last holder did not release them, so a poll may have ended without a record
}

// Kind implements river.JobArgs.
func (visitJob) Kind() string { return "feedhistory_visit" }

// InsertOpts implements river.JobArgsWithInsertOpts. A failed job is of no more use
// than its holds, which expire.
func (visitJob) InsertOpts() river.InsertOpts { return river.InsertOpts{Queue: queue, MaxAttempts: 3} }

// queue is the name of River's queue.
const queue = "feedhistory"

// hostsPerJob is the maximum number of hosts in a job.
const hostsPerJob = 50

// plan holds due hosts, the longest due first, makes jobs for them, and returns their
// number. If nothing comes of a job, its hosts are due again after the lease. Holds are
// durable, so no other worker gets a host after a crash of the database while its feeds
// are being polled.
func (w *Worker) plan(ctx context.Context, limit int) (hosts int, err error) {
	token := rand.Int64()
	err = w.Database.durably(ctx, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, holdHosts, token, w.lease(), limit)
		if err != nil {
			return err
		}
		var all, doubtful []string
		var host string
		var doubt bool
		_, err = pgx.ForEachRow(rows, []any{&host, &doubt}, func() error {
			all = append(all, host)
			if doubt {
				doubtful = append(doubtful, host)
			}
			return nil
		})
		if err != nil || len(all) == 0 {
			return err
		}
		var jobs []river.InsertManyParams
		for part := range slices.Chunk(all, hostsPerJob) {
			job := visitJob{Token: token, Hosts: part}
			for _, host := range doubtful {
				if slices.Contains(part, host) {
					job.Doubtful = append(job.Doubtful, host)
				}
			}
			jobs = append(jobs, river.InsertManyParams{Args: job})
		}
		hosts = len(all)
		_, err = w.river.InsertManyFastTx(ctx, tx, jobs)
		return err
	})
	return hosts, err
}

const holdHosts = `
	WITH free AS (
		SELECT host, holder IS NOT NULL AS doubtful FROM fleet_hosts
		WHERE due <= now() AND (until IS NULL OR until <= now()) AND (wait IS NULL OR wait <= now())
		ORDER BY due LIMIT $3 FOR UPDATE SKIP LOCKED
	)
	UPDATE fleet_hosts h SET holder = $1, until = now() + $2::interval, due = now() + $2::interval
	FROM free WHERE h.host = free.host
	RETURNING h.host, free.doubtful`

// A hold is a host only this worker polls, for some time.
type hold struct {
	host  string
	token int64
}

// sweep repairs inconsistencies. There should be none, but without it a
// forgotten host would be forgotten for ever. Run it when little is due.
func (d *Database) sweep(ctx context.Context, lease time.Duration) error {
	var b pgx.Batch
	b.Queue(`
		WITH first AS (SELECT host, min(due) AS due FROM fleet_feeds WHERE due IS NOT NULL GROUP BY host)
		INSERT INTO fleet_hosts AS h (host, due) SELECT host, due FROM first ORDER BY host
		ON CONFLICT (host) DO UPDATE SET due = greatest(excluded.due, h.wait)
		WHERE h.due IS NULL OR h.due > greatest(excluded.due, h.wait, now()) + $1`, lease)
	b.Queue(`
		DELETE FROM fleet_hosts h WHERE due IS NULL AND (wait IS NULL OR wait <= now())
			AND NOT EXISTS (SELECT FROM fleet_feeds f WHERE f.host = h.host)`)
	return d.brief(ctx, &b)
}
