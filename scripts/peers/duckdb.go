package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// duckSQL keeps the newest image of each row of a recording, and counts once over these.
const duckSQL = `
CREATE TABLE rows AS
	SELECT pk, sk, image->>'$.EntityType.S' AS type, image->>'$.albumId.S' AS album, image->>'$.mediaId.S' AS media,
		image->>'$.interactionType.S' AS interaction
	FROM (
		SELECT pk, sk, arg_max(image, seq) AS image FROM (
			SELECT r->>'$.dynamodb.Keys.PK.S' AS pk, r->>'$.dynamodb.Keys.SK.S' AS sk, (r->>'$.dynamodb.SequenceNumber')::HUGEINT AS seq,
				coalesce(r->'$.dynamodb.NewImage', '{}') AS image
			FROM (SELECT unnest(page->'$.Records[*]') AS r FROM read_ndjson_objects('%s', maximum_object_size = 67108864) t(page)))
		GROUP BY pk, sk)
	WHERE image <> '{}';
CREATE TABLE derived AS
	SELECT CASE type WHEN 'AlbumMedia' THEN 'ALBUM#' || album ELSE 'MEDIA#' || media END AS target,
		CASE type WHEN 'AlbumMedia' THEN 'mediaCount' ELSE interaction || 'Count' END AS value, count(*) AS n
	FROM rows WHERE type IN ('AlbumMedia', 'UserInteraction') GROUP BY 1, 2;
`

const duckDump = `SELECT d.target || ' ' || d.value || ' ' || d.n AS line FROM derived d JOIN rows r ON r.pk = d.target AND r.sk = 'METADATA'`

// duckPython runs SQL in a database, and prints the first column of what it answers.
const duckPython = `import sys, duckdb
c = duckdb.connect(sys.argv[1]).execute(sys.argv[2])
for row in c.fetchall() if len(sys.argv) > 3 else []: print(row[0])`

// duckCommand returns the command that runs SQL in the database of a directory, by DuckDB's program or by its Python module.
func duckCommand(dir, sql string, answer bool) (*exec.Cmd, error) {
	db := filepath.Join(dir, "duck.db")
	if path, err := exec.LookPath("duckdb"); err == nil {
		return exec.Command(path, "-list", "-noheader", db, sql), nil
	}
	python := os.Getenv("PYTHON")
	if python == "" {
		python = "python3"
	}
	if err := exec.Command(python, "-c", "import duckdb").Run(); err != nil {
		return nil, fmt.Errorf("no duckdb: install its program, or its module for Python (PYTHON names the interpreter)")
	}
	args := []string{"-c", duckPython, db, sql}
	if answer {
		args = append(args, "answer")
	}
	return exec.Command(python, args...), nil
}

func loadDuck(recording, dir string) (*exec.Cmd, error) {
	return duckCommand(dir, fmt.Sprintf(duckSQL, strings.ReplaceAll(recording, "'", "''")), false)
}

func dumpDuck(_ *peers, dir string, out io.Writer) error {
	cmd, err := duckCommand(dir, duckDump, true)
	if err != nil {
		return err
	}
	cmd.Stdout, cmd.Stderr = out, os.Stderr
	return cmd.Run()
}
