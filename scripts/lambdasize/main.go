// Command lambdasize measures the projector as a Lambda function: the size of the
// binary, zipped and not, and its cold start.
package main

import (
	"archive/zip"
	"compress/flate"
	"errors"
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

const starts = 9

func main() {
	if err := measure(); err != nil {
		fmt.Fprintln(os.Stderr, "lambdasize:", err)
		os.Exit(1)
	}
}

func measure() error {
	dir, err := os.MkdirTemp("", "weir-lambda-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	binary := filepath.Join(dir, "bootstrap")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", binary, "./cmd/projector")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return err
	}
	info, err := os.Stat(binary)
	if err != nil {
		return err
	}
	packed, err := zipped(binary)
	if err != nil {
		return err
	}
	var took []time.Duration
	for n := range starts {
		d, err := start(binary, filepath.Join(dir, fmt.Sprint(n)))
		if err != nil {
			return err
		}
		took = append(took, d)
	}
	slices.Sort(took)
	fmt.Printf("binary      %.1f MB\nzipped      %.1f MB\ncold start  %d ms (%d to %d)\n", mb(info.Size()), mb(packed),
		took[starts/2].Milliseconds(), took[0].Milliseconds(), took[starts-1].Milliseconds())
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
func start(binary, data string) (time.Duration, error) {
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
	f.Env = append(os.Environ(), "AWS_LAMBDA_RUNTIME_API="+l.Addr().String(), "WEIR_MODEL=gallery", "WEIR_DATA="+data)
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
