package fleet

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/rivertype"
)

// A hostJob is the job of a host.
type hostJob struct {
	Host string `json:"host"`
}

// Kind implements river.JobArgs.
func (hostJob) Kind() string { return "feedhistory_host" }

// InsertOpts implements river.JobArgsWithInsertOpts: a host has only one job,
// in any state, until the job is finished.
func (hostJob) InsertOpts() river.InsertOpts {
	return river.InsertOpts{
		Queue:       queue,
		MaxAttempts: 10,
		UniqueOpts: river.UniqueOpts{ByArgs: true, ByState: []rivertype.JobState{
			rivertype.JobStateAvailable, rivertype.JobStatePending, rivertype.JobStateRunning,
			rivertype.JobStateRetryable, rivertype.JobStateScheduled,
		}},
	}
}

// queue is the name of River's queue.
const queue = "feedhistory"

// occupied is when to try again to make a job for a host that still has one.
const occupied = time.Second

// plan makes jobs for hosts that are due, those that have been due for longest
// first, and returns their number. If nothing comes of a job, the host is due
// again after the lease.
func (w *Worker) plan(ctx context.Context, limit int) (hosts int, err error) {
	err = pgx.BeginFunc(ctx, w.Database.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			UPDATE fleet_hosts SET due = now() + $1 WHERE host IN (
				SELECT host FROM fleet_hosts
				WHERE due <= now() AND (until IS NULL OR until <= now())
				ORDER BY due LIMIT $2 FOR UPDATE SKIP LOCKED)
			RETURNING host`, w.lease(), limit)
		if err != nil {
			return err
		}
		due, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(due) == 0 {
			return err
		}
		jobs := make([]river.InsertManyParams, len(due))
		for i, host := range due {
			jobs[i].Args = hostJob{host}
		}
		results, err := w.river.InsertManyTx(ctx, tx, jobs)
		if err != nil {
			return err
		}
		var again []string
		for i, r := range results {
			if r.UniqueSkippedAsDuplicate {
				again = append(again, due[i])
			}
		}
		hosts = len(due) - len(again)
		_, err = tx.Exec(ctx, `UPDATE fleet_hosts SET due = now() + $1 WHERE host = ANY($2)`, occupied, again)
		return err
	})
	return hosts, err
}

// A hold is a host that only this worker polls, for some time.
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
		ON CONFLICT (host) DO UPDATE SET due = excluded.due
		WHERE h.due IS NULL OR h.due > greatest(excluded.due, now()) + $1`, lease)
	b.Queue(`
		DELETE FROM fleet_hosts h WHERE due IS NULL AND NOT EXISTS (SELECT FROM fleet_feeds f WHERE f.host = h.host)`)
	return d.brief(ctx, &b)
}
