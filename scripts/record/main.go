// Command record makes the recorded streams in testdata/streams from a real DynamoDB stream.
//
//	scripts/dynamodb-local.sh start 8000
//	go run ./scripts/record -model all -endpoint http://127.0.0.1:8000
//	scripts/dynamodb-local.sh stop 8000
//
// Start it afresh for a recording: DynamoDB Local becomes slower by the hour as its streams grow.
//
// Each model's application is a script, MODEL.star, in Starlark: its tables, the rows that it writes, what it does
// how often, and what must be answered afterwards. engine.go says what a script can do, and runs it.
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
//	examples/MODEL/recording            those of the examples
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

// models are the systems, each with a script of its name, and then the examples.
var (
	models   = []string{"gallery", "wardrobe", "watchlists", "viewing", "movienight", "shop", "github", "chat"}
	examples = []string{"shop", "github", "chat"}
)

// recordingFolder is where a model's recording is, below the root of the repository.
func recordingFolder(model string) string {
	if slices.Contains(examples, model) {
		return filepath.Join("examples", model, "recording")
	}
	return filepath.Join("testdata", "streams", model)
}

func main() {
	var (
		name     = flag.String("model", "all", "model to record, or all")
		out      = flag.String("out", ".", "the root of the repository; recordings go below it")
		endpoint = flag.String("endpoint", "http://127.0.0.1:8000", "DynamoDB Local (scripts/dynamodb-local.sh start)")
		seed     = flag.Uint64("seed", 1, "seed of the workload")
		scale    = flag.Float64("scale", 1, "size of the workload; 1 is what the tests use")
	)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := recordModels(ctx, *name, *out, *endpoint, *seed, *scale); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func recordModels(ctx context.Context, name, out, endpoint string, seed uint64, scale float64) error {
	chosen := models
	if name != "all" {
		if !slices.Contains(models, name) {
			return fmt.Errorf("no model %q; there are %s", name, strings.Join(models, ", "))
		}
		chosen = []string{name}
	}
	if scale < 0.5 {
		return fmt.Errorf("-scale %v is too small for the cases that the checks are about; 0.5 is the least", scale)
	}
	for _, m := range chosen {
		start := time.Now()
		sum, err := recordModel(ctx, m, filepath.Join(out, recordingFolder(m)), endpoint, seed, scale)
		if err != nil {
			return fmt.Errorf("%s: %w", m, err)
		}
		fmt.Fprintf(os.Stderr, "%s: %s in %s\n", m, sum, time.Since(start).Round(time.Millisecond))
	}
	return nil
}

// recordModel plays one model and replaces its folder when all of it is right.
func recordModel(ctx context.Context, m, dir, endpoint string, seed uint64, scale float64) (string, error) {
	a := newApp(ctx, m, endpoint, seed, scale)
	defer func() {
		a.ctx = context.WithoutCancel(ctx)
		for _, t := range a.specs {
			_ = a.dropTable(t) // the next run drops the tables that are left
		}
	}()
	s := &script{app: a, expect: newExpect(a)}
	if err := s.playScripts(); err != nil {
		return "", err
	}
	if err := s.err(); err != nil {
		return "", err
	}
	files, err := s.form(a.streams)
	if err != nil {
		return "", err
	}
	expected, err := s.makeFile(m, len(a.log))
	if err != nil {
		return "", err
	}
	if err := replaceDir(dir, append(files, expected)); err != nil {
		return "", err
	}
	return fmt.Sprintf("%d records, %d checks (%s)", len(a.log), len(s.checks), s.summary()), nil
}
