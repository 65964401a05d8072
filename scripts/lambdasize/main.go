// Command lambdasize measures the programs as Lambda loads them:
//
//   - the size of each binary, zipped and not;
//   - how long the function takes from its start until it asks for its first event, and until it has applied a first
//     record, for each built-in model and one with 40 derivations;
//   - what it has resident while it applies events of records of 2 KB, as a function of 128 MB.
//
// It fails if a zip is over mostZipped, or the function has more than 128 MB resident.
//
// The endpoint is that of a DynamoDB Local that no other process uses: it makes the tables of the models in it, those of
// each with an access key of its own.
package main

import (
	"archive/zip"
	"compress/flate"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const mostZipped = 10 << 20

func main() {
	endpoint := flag.String("endpoint", "", "URL of a DynamoDB Local; without it only sizes are measured")
	events := flag.Int("events", 50, "how many events the function's memory is measured with")
	records := flag.Int("records", 100, "how many records of 2 KB each of these events has")
	starts := flag.Int("starts", 5, "how often the function is started for each model")
	delay := flag.Duration("delay", 0, "how long each request to DynamoDB is held back, as a network does")
	flag.Parse()
	if err := measureAll(*endpoint, *delay, *starts, *events, *records); err != nil {
		fmt.Fprintln(os.Stderr, "lambdasize:", err)
		os.Exit(1)
	}
}

func measureAll(endpoint string, delay time.Duration, starts, events, records int) error {
	dir, err := os.MkdirTemp("", "weir-lambda-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var tooLarge error
	for _, name := range []string{"function", "ingest"} {
		whole, packed, err := buildSizes(dir, name)
		if err != nil {
			return err
		}
		fmt.Printf("%-12s%.1f MB, zipped %.1f MB\n", name, megabytes(whole), megabytes(packed))
		if packed > mostZipped {
			tooLarge = errors.Join(tooLarge, fmt.Errorf("the zip of %s has %.1f MB, more than %.1f", name, megabytes(packed), megabytes(mostZipped)))
		}
	}
	if endpoint == "" {
		return tooLarge
	}
	w, err := newWorld(context.Background(), filepath.Join(dir, "function"), endpoint, delay)
	if err != nil {
		return err
	}
	return errors.Join(tooLarge, w.coldStarts(starts), w.measureMemory(events, records))
}

// buildSizes builds a program as docs/guide/operations.md says.
func buildSizes(dir, name string) (whole, packed int64, err error) {
	binary := filepath.Join(dir, name)
	build := exec.Command("go", "build", "-trimpath", "-tags", "lambda,lambda.norpc", "-ldflags=-s -w", "-o", binary, "./cmd/"+name)
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return 0, 0, err
	}
	info, err := os.Stat(binary)
	if err != nil {
		return 0, 0, err
	}
	packed, err = zippedSize(binary)
	return info.Size(), packed, err
}

func megabytes(n int64) float64 { return float64(n) / (1 << 20) }

type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

func zippedSize(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var n counter
	z := zip.NewWriter(&n)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	w, err := z.Create("bootstrap")
	if err == nil {
		_, err = io.Copy(w, f)
	}
	return int64(n), errors.Join(err, z.Close())
}
