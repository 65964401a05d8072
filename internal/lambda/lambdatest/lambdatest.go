// Package lambdatest starts programs as Lambda does, for tests. It serves a runtime API
// over HTTP that hands out events and takes the answers.
package lambdatest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// Reply is what a function posted. Kind is "response" or "error".
type Reply struct{ Kind, Body string }

type invocation struct {
	payload []byte
	limit   time.Duration
}

// Function is a program as Lambda runs it.
type Function struct {
	Stdout bytes.Buffer
	Stderr bytes.Buffer
	Done   chan struct{} // closed when the program has ended

	t       *testing.T
	server  *httptest.Server
	events  chan invocation
	answers chan Reply
	path    string
	env     []string
	cmd     *exec.Cmd
	asking  atomic.Int64 // requests for an event
}

// New prepares a function: it is the test program itself, called by the name of the
// program that it stands for. The function is stopped when the test ends.
func New(t *testing.T, name string, env ...string) *Function {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), name)
	if err := os.Symlink(self, path); err != nil {
		t.Fatal(err)
	}
	return NewOf(t, path, env...)
}

// NewOf is New for a program that is already built.
func NewOf(t *testing.T, path string, env ...string) *Function {
	t.Helper()
	f := &Function{t: t, env: env, path: path, events: make(chan invocation), answers: make(chan Reply, 1)}
	f.server = httptest.NewServer(f.api())
	t.Cleanup(func() { f.Kill(); f.server.CloseClientConnections(); f.server.Close() })
	return f
}

// api is Lambda's runtime API: it hands out one event at a time and takes the answer.
func (f *Function) api() http.Handler {
	const base = "/2018-06-01/runtime/"
	mux, n := http.NewServeMux(), atomic.Int64{}
	mux.HandleFunc("GET "+base+"invocation/next", func(w http.ResponseWriter, r *http.Request) {
		f.asking.Add(1)
		defer f.asking.Add(-1)
		select {
		case e := <-f.events:
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", fmt.Sprint("request-", n.Add(1)))
			w.Header().Set("Lambda-Runtime-Deadline-Ms", fmt.Sprint(time.Now().Add(e.limit).UnixMilli()))
			w.Header().Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-west-1:1:function:f")
			w.Write(e.payload)
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("POST "+base, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
		f.answers <- Reply{r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:], string(body)}
	})
	return mux
}

// Start starts the program. more is added to the environment that New was given.
func (f *Function) Start(more ...string) {
	f.t.Helper()
	f.cmd = &exec.Cmd{Path: f.path, Args: []string{f.path}, Stdout: &f.Stdout, Stderr: &f.Stderr,
		Env: append(append(os.Environ(), "AWS_LAMBDA_RUNTIME_API="+f.server.Listener.Addr().String()), slices.Concat(f.env, more)...)}
	if err := f.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.Done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) { cmd.Wait(); close(done) }(f.cmd, f.Done)
}

// Ready waits until the function has started and asks for an event.
func (f *Function) Ready() {
	f.t.Helper()
	for end := time.Now().Add(30 * time.Second); f.asking.Load() == 0; time.Sleep(time.Millisecond) {
		select {
		case <-f.Done:
			f.t.Fatalf("the function ended: %s", f.Stderr.String())
		default:
		}
		if time.Now().After(end) {
			f.t.Fatal("the function asks for no event")
		}
	}
}

// Kill ends the process as a crash does. When it returns, no request of the process for
// an event is pending any more.
func (f *Function) Kill() {
	if f.cmd == nil {
		return
	}
	f.cmd.Process.Kill()
	<-f.Done
	f.server.CloseClientConnections()
	for f.asking.Load() > 0 {
		time.Sleep(time.Millisecond)
	}
}

// ExitCode waits for the program to end and returns its exit code.
func (f *Function) ExitCode() int {
	<-f.Done
	return f.cmd.ProcessState.ExitCode()
}

// Invoke sends an event and returns the answer to it. The test fails if there is none.
func (f *Function) Invoke(payload []byte, limit time.Duration) Reply {
	f.t.Helper()
	select {
	case f.events <- invocation{payload, limit}:
	case <-f.Done:
		f.t.Fatalf("the function ended: %s", f.Stderr.String())
	case <-time.After(30 * time.Second):
		f.t.Fatal("the function asks for no event")
	}
	select {
	case a := <-f.answers:
		return a
	case <-f.Done:
		f.t.Fatalf("the function ended: %s", f.Stderr.String())
	case <-time.After(time.Minute):
		f.t.Fatal("the function gives no answer")
	}
	return Reply{}
}
