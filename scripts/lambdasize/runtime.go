package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// function is a process of the function, and the runtime API that hands it events as Lambda does.
type function struct {
	cmd    *exec.Cmd
	log    bytes.Buffer // its output; read it after the process has ended
	began  time.Time
	server *http.Server
	asks   chan struct{} // it asks for an event
	events chan []byte
	done   chan answer
}

// answer is the answer that the function posted.
type answer struct{ kind, body string }

// patience is how long the function may take to ask for an event, or to answer one.
const patience = 5 * time.Minute

// startFunction starts the function. The caller stops it.
func startFunction(binary string, env []string) (*function, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	f := &function{asks: make(chan struct{}, 1), events: make(chan []byte), done: make(chan answer, 1)}
	f.server = &http.Server{Handler: f.runtimeAPI()}
	go f.server.Serve(l)
	f.cmd = exec.Command(binary)
	f.cmd.Env = append(env, "AWS_LAMBDA_RUNTIME_API="+l.Addr().String())
	f.cmd.Stdout, f.cmd.Stderr = &f.log, &f.log
	f.began = time.Now()
	return f, errors.Join(f.cmd.Start())
}

// runtimeAPI is Lambda's runtime API: an event at a time, and its answer.
func (f *function) runtimeAPI() http.Handler {
	mux, n := http.NewServeMux(), 0
	mux.HandleFunc("GET /2018-06-01/runtime/invocation/next", func(w http.ResponseWriter, r *http.Request) {
		f.asks <- struct{}{}
		select {
		case event := <-f.events:
			n++
			w.Header().Set("Lambda-Runtime-Aws-Request-Id", strconv.Itoa(n))
			w.Header().Set("Lambda-Runtime-Deadline-Ms", strconv.FormatInt(time.Now().Add(patience).UnixMilli(), 10))
			w.Header().Set("Lambda-Runtime-Invoked-Function-Arn", "arn:aws:lambda:eu-central-1:1:function:weir")
			_, _ = w.Write(event)
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("POST /2018-06-01/runtime/", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.WriteHeader(http.StatusAccepted)
		f.done <- answer{path.Base(r.URL.Path), string(body)}
	})
	return mux
}

// awaitReady waits until the function asks for an event.
func (f *function) awaitReady() error {
	select {
	case <-f.asks:
		return nil
	case a := <-f.done:
		return fmt.Errorf("it did not start: %s %s", a.kind, a.body)
	case <-time.After(patience):
		return errors.New("it never asked for an event")
	}
}

// applyEvent hands over an event, for which the function must ask already, and waits for its answer, which must acknowledge
// all of it.
func (f *function) applyEvent(event []byte) error {
	f.events <- event
	select {
	case a := <-f.done:
		if a.kind != "response" || !strings.Contains(a.body, `"batchItemFailures":[]`) {
			return fmt.Errorf("the event was not applied: %s %s", a.kind, a.body)
		}
		return nil
	case <-time.After(patience):
		return errors.New("it never answered")
	}
}

// cpuTime is the time of processors that the function has taken; 0 where the kernel does not say.
func (f *function) cpuTime() (sum time.Duration) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", f.cmd.Process.Pid))
	for _, name := range files {
		var ran int64
		if b, err := os.ReadFile(name); err == nil {
			_, _ = fmt.Sscan(string(b), &ran)
		}
		sum += time.Duration(ran)
	}
	return sum
}

// highWater is the most that the process had resident until now, in bytes. It is more than Lambda counts, if anything:
// pages of the program are in it.
func (f *function) highWater() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", f.cmd.Process.Pid))
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(string(text), "VmHWM:")
	if !ok {
		return 0, errors.New("the kernel does not say what the process had resident")
	}
	kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	return kb << 10, err
}

// stopFunction ends the function, and returns its output.
func (f *function) stopFunction() string {
	_ = f.cmd.Process.Kill()
	_ = f.cmd.Wait()
	_ = f.server.Close()
	return f.log.String()
}
