package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
)

// tablesQuery lists the tables and indexes of a new mirror.
const tablesQuery = `SELECT name FROM sqlite_schema WHERE name LIKE 'feedhistory\_%' ESCAPE '\'`

// schemaQuery lists the parts of the named tables in a SQLite file, which may have others, such
// as those of a command. Databases of every version have the same parts, though not the same
// statements.
const schemaQuery = `
	SELECT concat_ws(' ', m.name, c.name, c.type, c."notnull", c.dflt_value, c.pk, c.hidden) FROM sqlite_schema m, pragma_table_xinfo(m.name) c
		WHERE m.name IN (SELECT value FROM json_each(?1))
	UNION ALL SELECT coalesce(sql, name) FROM sqlite_schema WHERE type = 'index' AND tbl_name IN (SELECT value FROM json_each(?1))
	UNION ALL SELECT concat_ws(' ', name, type, wr, strict) FROM pragma_table_list WHERE name IN (SELECT value FROM json_each(?1))
	UNION ALL SELECT concat_ws(' ', m.name, f."table", f."from", f."to", f.on_delete) FROM sqlite_schema m, pragma_foreign_key_list(m.name) f
		WHERE m.name IN (SELECT value FROM json_each(?1))
	UNION ALL SELECT replace(replace(replace(substr(sql, instr(sql, 'USING')), char(10), ''), char(9), ''), ' ', '')
		FROM sqlite_schema WHERE name = 'feedhistory_search'
	ORDER BY 1`

// generatedQuery counts the entries whose generated columns are not as in the schema.
const generatedQuery = `SELECT count(*) FROM fh.entries WHERE time IS NOT coalesce(nullif(published, ''), nullif(updated, ''), added)
	OR changed IS NOT iif(changed_own = '=', added, changed_own) OR at IS NOT iif(at_own = '=', updated, at_own)`

// A memory connects to a new database in memory.
type memory struct{ d driver.Driver }

// Connect implements driver.Connector.
func (m memory) Connect(context.Context) (driver.Conn, error) { return m.d.Open(":memory:") }

// Driver implements driver.Connector.
func (m memory) Driver() driver.Driver { return m.d }

// schemaFault compares the schema of a SQLite file with that of a new one, and returns the
// difference; "" if there is none.
func (s *Store) schemaFault(ctx context.Context) (string, error) {
	fresh := sql.OpenDB(memory{s.db.Driver()})
	defer fresh.Close()
	fresh.SetMaxOpenConns(1) // another connection would have another database
	scripts, err := s.scripts(0)
	if err != nil {
		return "", err
	}
	for _, script := range scripts {
		if _, err := fresh.ExecContext(ctx, script); err != nil {
			return "", err
		}
	}
	tables, err := column(ctx, fresh, tablesQuery)
	if err != nil {
		return "", err
	}
	names := list(&s.dialect, tables)
	wanted, err := column(ctx, fresh, schemaQuery, names)
	if err != nil {
		return "", err
	}
	found, err := column(ctx, s.db, schemaQuery, names)
	if err != nil {
		return "", err
	}
	for _, part := range found {
		if !slices.Contains(wanted, part) {
			return "its schema has " + part, nil
		}
	}
	if len(found) != len(wanted) {
		return fmt.Sprintf("its schema has %d parts instead of %d", len(found), len(wanted)), nil
	}
	different := 0
	err = s.db.QueryRowContext(ctx, s.text(generatedQuery)).Scan(&different)
	if different > 0 {
		return fmt.Sprintf("its schema computes other times of %d entries", different), err
	}
	return "", err
}
