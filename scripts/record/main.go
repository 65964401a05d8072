// Command record makes the recorded streams in testdata/streams from a real DynamoDB stream.
//
//	scripts/dynamodb-local.sh start 8000
//	go run ./scripts/record -model all -endpoint http://127.0.0.1:8000
//	scripts/dynamodb-local.sh stop 8000
//
// Start it afresh for a recording: DynamoDB Local becomes slower by the hour as its streams grow.
//
// For each model it creates the tables of the model's document, plays an application that uses them (an
// application that knows nothing of derived data: it writes rows, and sometimes a stale copy of one), reads the
// streams, and writes what came out of them beside what must be answered once everything derived has caught up:
//
//	gallery/stream.jsonl.gz             pages as GetRecords returns them, one page a line
//	wardrobe/stream.jsonl.zst           Lambda events, one event a line, of 1 to 100 records each
//	watchlists/stream.jsonl.gz          bare records, one record a line
//	viewing/page-N.json.gz              what the command line's get-records prints, one document a file, times as ISO 8601
//	movienight/TABLE.jsonl.gz           Lambda events, one file for each table
//	MODEL/expected.json.gz              the named queries, their parameters, and exactly what they answer
//
// The records themselves are the bytes of the service: only what stands around a record differs from form to form
// (a Lambda event names its stream and spells userIdentity in lower case, the command line prints times as text).
//
// expected.json is {"model", "records", "rows", "history", "checks"}: the number of stream records and of rows that
// the application left in each table, the number of history rows of each kind, and the checks, one a line:
//
//	{"query": NAME, "params": {…}, "ordered": true, "items": [ … ]}
//
// Items are whole rows as plain JSON: numbers exact, sets as sorted arrays (numbers by value), binary as base64.
// "ordered" false means that the order is free. "subset" true means that an item lists only the attributes that
// count and may have others. "except" names attribute values: a row that has one of them is left out of the
// comparison, because the application left it in a state that a live migration may change.
//
// The answers come from the recorder's own bookkeeping: maps of the rows that the application wrote, and a plain
// recount at the end. It shares no code with the rest of this module, so that an error there cannot hide here. The
// bookkeeping in turn is held against the service: every stream record against the change that was booked, every
// table against the booked rows, and every check that an access pattern of the document can answer against that
// access pattern's answer. A difference fails the run and leaves the old files in place.
//
// The workload is a function of -seed and -scale. Event ids, sequence numbers, creation times and the expiry times
// of the few rows that the service itself sweeps differ from run to run.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// A model is one system: its tables, the application that writes them, and what must be answered afterwards.
type model struct {
	name   string
	tables []tableSpec
	play   func(*app)          // writes the workload
	expect func(*app, *expect) // states the checks, from the booked rows
	form   form                // how its records are written down
	page   int32               // records a page of GetRecords
}

var models = []model{gallery, wardrobe, watchlists, viewing, movienight}

func main() {
	var (
		name     = flag.String("model", "all", "model to record, or all")
		out      = flag.String("out", filepath.Join("testdata", "streams"), "folder for the recordings")
		endpoint = flag.String("endpoint", "http://127.0.0.1:8000", "DynamoDB Local (scripts/dynamodb-local.sh start)")
		seed     = flag.Uint64("seed", 1, "seed of the workload")
		scale    = flag.Float64("scale", 1, "size of the workload; 1 is what the tests use")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *name, *out, *endpoint, *seed, *scale); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, name, out, endpoint string, seed uint64, scale float64) error {
	chosen := models
	if name != "all" {
		i := slices.IndexFunc(models, func(m model) bool { return m.name == name })
		if i < 0 {
			return fmt.Errorf("no model %q; there are %s", name, strings.Join(names(), ", "))
		}
		chosen = models[i : i+1]
	}
	if scale < 0.5 {
		return fmt.Errorf("-scale %v is too small for the cases that the checks are about; 0.5 is the least", scale)
	}
	for _, m := range chosen {
		start := time.Now()
		sum, err := record(ctx, m, filepath.Join(out, m.name), endpoint, seed, scale)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %s in %s\n", m.name, sum, time.Since(start).Round(time.Millisecond))
	}
	return nil
}

// record plays one model and replaces its folder when all of it is right.
func record(ctx context.Context, m model, dir, endpoint string, seed uint64, scale float64) (string, error) {
	a, err := newApp(ctx, m, endpoint, seed, scale)
	if err != nil {
		return "", err
	}
	defer a.dropTables()
	m.play(a)
	if a.failed != nil {
		return "", a.failed
	}
	streams, err := a.capture()
	if err != nil {
		return "", err
	}
	if err := a.auditStreams(streams); err != nil {
		return "", err
	}
	if err := a.auditTables(); err != nil {
		return "", err
	}
	e := newExpect(a)
	m.expect(a, e)
	if err := e.err(); err != nil {
		return "", err
	}
	files, err := m.form(streams)
	if err != nil {
		return "", err
	}
	expected, err := e.file(m.name, len(a.log))
	if err != nil {
		return "", err
	}
	files = append(files, expected)
	if err := replaceDir(dir, files); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d records, %d checks (%s)", len(a.log), len(e.checks), e.summary()), nil
}

func names() []string {
	var out []string
	for _, m := range models {
		out = append(out, m.name)
	}
	return out
}
