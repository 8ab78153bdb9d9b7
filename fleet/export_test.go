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

// Where returns where PostgreSQL's programs and its data are.
func (d *Database) Where(ctx context.Context) (programs, data string, err error) {
	err = d.pool.QueryRow(ctx, `SELECT setting, current_setting('data_directory') FROM pg_config WHERE name = 'BINDIR'`).Scan(&programs, &data)
	return programs, data, err
}

// Size returns how large a table is, and its indexes, in bytes.
func (d *Database) Size(ctx context.Context, table string) (heap, indexes int64, err error) {
	return heap, indexes, d.pool.QueryRow(ctx, `SELECT pg_table_size($1::regclass), pg_indexes_size($1::regclass)`, table).Scan(&heap, &indexes)
}
