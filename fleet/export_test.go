package fleet

import "context"

// Exec runs a statement of a test.
func (d *Database) Exec(ctx context.Context, statement string) error {
	_, err := d.pool.Exec(ctx, statement)
	return err
}

// Backend returns the process of PostgreSQL that serves a connection.
func (d *Database) Backend(ctx context.Context) (pid int, err error) {
	return pid, d.pool.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid)
}
