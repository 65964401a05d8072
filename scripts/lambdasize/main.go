// Command lambdasize measures the programs as Lambda loads them: the size of each binary,
// zipped and not, and how long the function takes from its start until it asks for its
// first event. It fails if a zip is over mostZipped.
//
// The endpoint is that of a DynamoDB Local that no other process uses: it makes the
// tables of a model in it.
package main

import (
	"archive/zip"
	"compress/flate"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

const (
	starts     = 9
	mostZipped = 10 << 20
	model      = "gallery"
)

func main() {
	endpoint := flag.String("endpoint", "", "URL of a DynamoDB Local, for the cold start; without it only sizes are measured")
	flag.Parse()
	if err := measure(*endpoint); err != nil {
		fmt.Fprintln(os.Stderr, "lambdasize:", err)
		os.Exit(1)
	}
}

func measure(endpoint string) error {
	dir, err := os.MkdirTemp("", "weir-lambda-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var tooLarge error
	for _, name := range []string{"function", "ingest"} {
		whole, packed, err := sizes(dir, name)
		if err != nil {
			return err
		}
		fmt.Printf("%-12s%.1f MB, zipped %.1f MB\n", name, mb(whole), mb(packed))
		if packed > mostZipped {
			tooLarge = errors.Join(tooLarge, fmt.Errorf("the zip of %s has %.1f MB, more than %.1f", name, mb(packed), mb(mostZipped)))
		}
	}
	if endpoint == "" {
		return tooLarge
	}
	return errors.Join(tooLarge, coldStarts(filepath.Join(dir, "function"), endpoint))
}

// sizes builds a program as docs/guide/operations.md says.
func sizes(dir, name string) (whole, packed int64, err error) {
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
	packed, err = zipped(binary)
	return info.Size(), packed, err
}

// coldStarts makes the tables of a model, and starts the function several times.
func coldStarts(binary, endpoint string) error {
	env := append(os.Environ(), "AWS_ENDPOINT_URL_DYNAMODB="+endpoint, "AWS_ENDPOINT_URL_DYNAMODB_STREAMS="+endpoint,
		"AWS_REGION=eu-central-1", "AWS_ACCESS_KEY_ID=local", "AWS_SECRET_ACCESS_KEY=local", "WEIR_MODEL="+model)
	deploy := exec.Command("go", "run", "./cmd/projector", "deploy", "tables", model, "--aws")
	deploy.Env, deploy.Stderr = env, os.Stderr
	if err := deploy.Run(); err != nil {
		return fmt.Errorf("deploy tables: %w", err)
	}
	var took []time.Duration
	for range starts {
		d, err := start(binary, env)
		if err != nil {
			return err
		}
		took = append(took, d)
	}
	slices.Sort(took)
	fmt.Printf("cold start  %d ms (%d to %d)\n", took[starts/2].Milliseconds(), took[0].Milliseconds(), took[starts-1].Milliseconds())
	return nil
}

func mb(n int64) float64 { return float64(n) / (1 << 20) }

type counter int64

func (c *counter) Write(p []byte) (int, error) { *c += counter(len(p)); return len(p), nil }

func zipped(path string) (int64, error) {
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

// start runs the function until it asks for its first event.
func start(binary string, env []string) (time.Duration, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	asked := make(chan string, 1)
	srv := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.URL.Path:
		default:
		}
		<-r.Context().Done()
	})}
	go srv.Serve(l)
	defer srv.Close()
	f := exec.Command(binary)
	f.Env = append(env, "AWS_LAMBDA_RUNTIME_API="+l.Addr().String())
	f.Stderr = os.Stderr
	begin := time.Now()
	if err := f.Start(); err != nil {
		return 0, err
	}
	defer func() { f.Process.Kill(); f.Wait() }()
	select {
	case path := <-asked:
		if filepath.Base(path) != "next" {
			return 0, fmt.Errorf("it asked for %s", path)
		}
		return time.Since(begin), nil
	case <-time.After(30 * time.Second):
		return 0, errors.New("it never asked for an event")
	}
}
