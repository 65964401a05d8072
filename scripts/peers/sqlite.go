package main

import (
	"database/sql"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// batch is how many changes a database commits at a time.
const batch = 10_000

// sqliteTables keep the rows with their indexes, and count by triggers, which see the row before and after each
// change. The place in the recording is committed with its effects.
const sqliteTables = `
CREATE TABLE IF NOT EXISTS rows (
	id INTEGER PRIMARY KEY, pk TEXT NOT NULL, sk TEXT NOT NULL, target TEXT, value TEXT,
	i1 TEXT, s1 TEXT, i2 TEXT, s2 TEXT, i3 TEXT, s3 TEXT, i4 TEXT, s4 TEXT, i5 TEXT, s5 TEXT,
	image BLOB NOT NULL, UNIQUE (pk, sk));
CREATE INDEX IF NOT EXISTS rows1 ON rows (i1, s1) WHERE i1 IS NOT NULL;
CREATE INDEX IF NOT EXISTS rows2 ON rows (i2, s2) WHERE i2 IS NOT NULL;
CREATE INDEX IF NOT EXISTS rows3 ON rows (i3, s3) WHERE i3 IS NOT NULL;
CREATE INDEX IF NOT EXISTS rows4 ON rows (i4, s4) WHERE i4 IS NOT NULL;
CREATE INDEX IF NOT EXISTS rows5 ON rows (i5, s5) WHERE i5 IS NOT NULL;
CREATE TABLE IF NOT EXISTS derived (target TEXT, value TEXT, n INTEGER NOT NULL, PRIMARY KEY (target, value)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS applied (n INTEGER NOT NULL);
CREATE TRIGGER IF NOT EXISTS inserted AFTER INSERT ON rows WHEN new.target IS NOT NULL BEGIN
	INSERT INTO derived VALUES (new.target, new.value, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
CREATE TRIGGER IF NOT EXISTS removed AFTER DELETE ON rows WHEN old.target IS NOT NULL BEGIN
	UPDATE derived SET n = n - 1 WHERE target = old.target AND value = old.value;
END;
CREATE TRIGGER IF NOT EXISTS left AFTER UPDATE ON rows
		WHEN old.target IS NOT NULL AND (old.target, old.value) IS NOT (new.target, new.value) BEGIN
	UPDATE derived SET n = n - 1 WHERE target = old.target AND value = old.value;
END;
CREATE TRIGGER IF NOT EXISTS joined AFTER UPDATE ON rows
		WHEN new.target IS NOT NULL AND (old.target, old.value) IS NOT (new.target, new.value) BEGIN
	INSERT INTO derived VALUES (new.target, new.value, 1) ON CONFLICT DO UPDATE SET n = n + 1;
END;
`

const columns = "pk, sk, target, value, i1, s1, i2, s2, i3, s3, i4, s4, i5, s5, image"

// overwritten says, in the SQL of both databases, that a row that exists gets all columns of the new one but its key.
func overwritten() string {
	var set []string
	for _, name := range strings.Split(columns, ", ")[2:] {
		set = append(set, name+" = excluded."+name)
	}
	return strings.Join(set, ", ")
}

// derivedValues lists the derived values of rows that exist.
const derivedValues = `SELECT d.target, d.value, d.n FROM derived d JOIN rows r ON r.pk = d.target AND r.sk = 'METADATA' WHERE d.n <> 0`

func openSQLite(dir string) (*sql.DB, error) {
	db, err := sql.Open(sqliteDriver, filepath.Join(dir, "rows.db"))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	for _, s := range []string{"PRAGMA journal_mode = WAL", "PRAGMA synchronous = NORMAL", "PRAGMA cache_size = -131072", sqliteTables} {
		if _, err := db.Exec(s); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return db, nil
}

// loadSQLite applies a recording, from where an earlier run of it ended.
func loadSQLite(recording, dir string) error {
	db, err := openSQLite(dir)
	if err != nil {
		return err
	}
	return errors.Join(applySQLite(db, recording), db.Close())
}

func applySQLite(db *sql.DB, recording string) error {
	var applied int
	if err := db.QueryRow("SELECT coalesce(max(n), 0) FROM applied").Scan(&applied); err != nil {
		return err
	}
	put, err := db.Prepare(fmt.Sprintf("INSERT INTO rows (%s) VALUES (?%s) ON CONFLICT (pk, sk) DO UPDATE SET %s",
		columns, strings.Repeat(", ?", strings.Count(columns, ",")), overwritten()))
	if err != nil {
		return err
	}
	remove, err := db.Prepare("DELETE FROM rows WHERE pk = ? AND sk = ?")
	if err != nil {
		return err
	}
	var (
		tx         *sql.Tx
		putInTx    *sql.Stmt
		removeInTx *sql.Stmt
		last       int
	)
	commit := func() error {
		if tx == nil {
			return nil
		}
		if _, err := tx.Exec("DELETE FROM applied"); err != nil {
			return err
		}
		if _, err := tx.Exec("INSERT INTO applied VALUES (?)", last); err != nil {
			return err
		}
		done := tx
		tx = nil
		return done.Commit()
	}
	err = readChanges(recording, func(n int, c change) error {
		if n < applied {
			return nil
		}
		if tx == nil {
			var err error
			if tx, err = db.Begin(); err != nil {
				return err
			}
			putInTx, removeInTx = tx.Stmt(put), tx.Stmt(remove)
		}
		if c.new == nil {
			if _, err := removeInTx.Exec(c.pk, c.sk); err != nil {
				return err
			}
		} else if _, err := putInTx.Exec(c.row()...); err != nil {
			return err
		}
		if last = n + 1; last%batch == 0 {
			return commit()
		}
		return nil
	})
	return errors.Join(err, commit())
}

// row returns the columns of a row that a change puts; nil for those that the row has not.
func (c *change) row() []any {
	out := []any{c.pk, c.sk, null(c.new.target), null(c.new.value)}
	for i := 0; i < len(c.new.keys); i += 2 {
		pk, sk := c.new.keys[i], c.new.keys[i+1]
		if pk == "" || sk == "" {
			out = append(out, nil, nil)
			continue
		}
		out = append(out, pk, sk)
	}
	return append(out, c.new.raw)
}

func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// dumpSQLite prints the derived values.
func dumpSQLite(_ *peers, dir string, out io.Writer) error {
	db, err := openSQLite(dir)
	if err != nil {
		return err
	}
	defer db.Close()
	rows, err := db.Query(derivedValues)
	if err != nil {
		return err
	}
	defer rows.Close()
	return printDerived(rows, out)
}

// printDerived prints the answer of derivedValues.
func printDerived(rows interface {
	Next() bool
	Scan(to ...any) error
	Err() error
}, out io.Writer) error {
	for rows.Next() {
		var target, value string
		var n int64
		if err := rows.Scan(&target, &value, &n); err != nil {
			return err
		}
		fmt.Fprintln(out, target, value, n)
	}
	return rows.Err()
}
