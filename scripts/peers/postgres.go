package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// postgresTables keep the rows with their indexes, and count by triggers, which see all rows that a statement changes.
const postgresTables = `
CREATE TABLE rows (
	pk text COLLATE "C", sk text COLLATE "C", target text COLLATE "C", value text COLLATE "C",
	i1 text COLLATE "C", s1 text COLLATE "C", i2 text COLLATE "C", s2 text COLLATE "C", i3 text COLLATE "C", s3 text COLLATE "C",
	i4 text COLLATE "C", s4 text COLLATE "C", i5 text COLLATE "C", s5 text COLLATE "C", image bytea, PRIMARY KEY (pk, sk));
CREATE INDEX ON rows (i1, s1) WHERE i1 IS NOT NULL;
CREATE INDEX ON rows (i2, s2) WHERE i2 IS NOT NULL;
CREATE INDEX ON rows (i3, s3) WHERE i3 IS NOT NULL;
CREATE INDEX ON rows (i4, s4) WHERE i4 IS NOT NULL;
CREATE INDEX ON rows (i5, s5) WHERE i5 IS NOT NULL;
CREATE TABLE derived (target text COLLATE "C", value text COLLATE "C", n bigint NOT NULL, PRIMARY KEY (target, value));
CREATE TABLE applied (n bigint NOT NULL);
CREATE UNLOGGED TABLE batch (LIKE rows);
ALTER TABLE batch ADD n bigint;
CREATE FUNCTION add_new() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO derived AS d SELECT target, value, count(*) FROM added WHERE target IS NOT NULL GROUP BY 1, 2
		ON CONFLICT (target, value) DO UPDATE SET n = d.n + excluded.n;
	RETURN NULL; END $$;
CREATE FUNCTION subtract_old() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	UPDATE derived d SET n = d.n - r.n FROM (SELECT target, value, count(*) n FROM gone WHERE target IS NOT NULL GROUP BY 1, 2) r
		WHERE d.target = r.target AND d.value = r.value;
	RETURN NULL; END $$;
CREATE FUNCTION exchange() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO derived AS d SELECT target, value, sum(n) FROM (
			SELECT target, value, 1 n FROM added UNION ALL SELECT target, value, -1 FROM gone) x
		WHERE target IS NOT NULL GROUP BY 1, 2 HAVING sum(n) <> 0
		ON CONFLICT (target, value) DO UPDATE SET n = d.n + excluded.n;
	RETURN NULL; END $$;
CREATE TRIGGER inserted AFTER INSERT ON rows REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION add_new();
CREATE TRIGGER removed AFTER DELETE ON rows REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION subtract_old();
CREATE TRIGGER changed AFTER UPDATE ON rows REFERENCING OLD TABLE AS gone NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION exchange();
`

// postgresServer is a server with a directory of its own, reached by a socket in it.
type postgresServer struct {
	cmd *exec.Cmd
	dir string
}

// postgresTool finds a program of PostgreSQL's server.
func postgresTool(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) == 0 {
		return "", fmt.Errorf("no %s: install PostgreSQL's server (Debian's package postgresql)", name)
	}
	return slices.Max(found), nil
}

// asPostgres lets a command run as the user postgres if this program is run by root, as whom PostgreSQL does not run.
func asPostgres(cmd *exec.Cmd, dir string) error {
	cmd.Dir = dir
	if os.Getuid() != 0 {
		return nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return err
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		return err
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	return os.Chown(dir, int(uid), int(gid))
}

// initPostgres makes the directory of a server in dir.
func initPostgres(dir string) error {
	initdb, err := postgresTool("initdb")
	if err != nil {
		return err
	}
	cmd := exec.Command(initdb, "-D", filepath.Join(dir, "pg"), "-U", "postgres", "--auth=trust", "--no-locale", "-E", "UTF8", "-N")
	if err := asPostgres(cmd, dir); err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	return nil
}

func startPostgres(dir string) (*postgresServer, error) {
	postgres, err := postgresTool("postgres")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(postgres, "-D", filepath.Join(dir, "pg"), "-k", dir, "-h", "", "-c", "synchronous_commit=off", "-c", "shared_buffers=128MB",
		"-c", "max_wal_size=2GB", "-c", "wal_level=minimal", "-c", "max_wal_senders=0", "-c", "jit=off", "-c", "autovacuum_naptime=10s")
	log, err := os.OpenFile(filepath.Join(dir, "postgres.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer log.Close() // the server has its own
	cmd.Stderr = log
	if err := asPostgres(cmd, dir); err != nil {
		return nil, err
	}
	return &postgresServer{cmd, dir}, cmd.Start()
}

// connect waits for the server.
func (s *postgresServer) connect(ctx context.Context) (*pgx.Conn, error) {
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		c, err := pgx.Connect(ctx, "host="+s.dir+" user=postgres dbname=postgres sslmode=disable")
		if err == nil {
			return c, nil
		} else if time.Now().After(until) {
			text, _ := os.ReadFile(filepath.Join(s.dir, "postgres.log"))
			return nil, fmt.Errorf("%w\n%s", err, text)
		}
	}
}

// stop ends the server when its clients are gone, and waits for it.
func (s *postgresServer) stop() error {
	return errors.Join(s.cmd.Process.Signal(syscall.SIGTERM), s.cmd.Wait())
}

// withPostgres starts the server of a directory for the time that do takes.
func withPostgres(dir string, do func(context.Context, *pgx.Conn) error) error {
	ctx := context.Background()
	s, err := startPostgres(dir)
	if err != nil {
		return err
	}
	c, err := s.connect(ctx)
	if err == nil {
		err = errors.Join(do(ctx, c), c.Close(ctx))
	}
	return errors.Join(err, s.stop())
}

// loadPostgres applies a recording, from where an earlier run of it ended.
func loadPostgres(recording, dir string) error {
	return withPostgres(dir, func(ctx context.Context, c *pgx.Conn) error {
		var exists bool
		if err := c.QueryRow(ctx, "SELECT to_regclass('applied') IS NOT NULL").Scan(&exists); err != nil {
			return err
		}
		if !exists {
			if _, err := c.Exec(ctx, postgresTables); err != nil {
				return err
			}
		}
		return applyPostgres(ctx, c, recording)
	})
}

func applyPostgres(ctx context.Context, c *pgx.Conn, recording string) error {
	var applied int
	if err := c.QueryRow(ctx, "SELECT coalesce(max(n), 0) FROM applied").Scan(&applied); err != nil {
		return err
	}
	var rows [][]any
	last := 0
	commit := func() error {
		if len(rows) == 0 {
			return nil
		}
		err := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error { return commitPostgres(ctx, tx, rows, last) })
		rows = rows[:0]
		return err
	}
	err := readChanges(recording, func(n int, ch change) error {
		if n < applied {
			return nil
		}
		if ch.new == nil {
			row := make([]any, 16)
			row[0], row[1], row[15] = ch.pk, ch.sk, n
			rows = append(rows, row)
		} else {
			ch.new.raw = slices.Clone(ch.new.raw)
			rows = append(rows, append(ch.row(), n))
		}
		if last = n + 1; len(rows) == batch {
			return commit()
		}
		return nil
	})
	return errors.Join(err, commit())
}

// commitPostgres copies a batch into a table of its own, and puts the last image of each row from there.
func commitPostgres(ctx context.Context, tx pgx.Tx, rows [][]any, last int) error {
	names := strings.Split(columns, ", ")
	if _, err := tx.Exec(ctx, "TRUNCATE batch"); err != nil {
		return err
	}
	if _, err := tx.CopyFrom(ctx, pgx.Identifier{"batch"}, append(slices.Clone(names), "n"), pgx.CopyFromRows(rows)); err != nil {
		return err
	}
	newest := "SELECT DISTINCT ON (pk, sk) * FROM batch ORDER BY pk, sk, n DESC"
	for _, s := range []string{
		fmt.Sprintf("INSERT INTO rows (%s) SELECT %s FROM (%s) b WHERE image IS NOT NULL ON CONFLICT (pk, sk) DO UPDATE SET %s",
			columns, columns, newest, overwritten()),
		fmt.Sprintf("DELETE FROM rows r USING (%s) b WHERE b.image IS NULL AND r.pk = b.pk AND r.sk = b.sk", newest),
		"DELETE FROM applied",
		fmt.Sprintf("INSERT INTO applied VALUES (%d)", last),
	} {
		if _, err := tx.Exec(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// dumpPostgres prints what was derived.
func dumpPostgres(_ *peers, dir string, out io.Writer) error {
	return withPostgres(dir, func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, derivedValues)
		if err != nil {
			return err
		}
		defer rows.Close()
		return printDerived(rows, out)
	})
}
