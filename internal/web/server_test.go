package web

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"weir/internal/failtest"
)

// start serves on a free port until the test ends, or stop is called.
func start(t *testing.T, h http.Handler) (base string, stop func() error) {
	t.Helper()
	s, err := Listen("127.0.0.1:0", Bounds{}, h, nil)
	failtest.On(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = func() error { cancel(); return <-done }
	t.Cleanup(cancel)
	return "http://" + s.Addr().String(), stop
}

var quiet = Talk{slog.New(slog.NewTextHandler(io.Discard, nil))}

func TestServer(t *testing.T) {
	base, stop := start(t, quiet.Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		WriteJSON(w, map[string]bool{"ok": true})
	})))
	res, err := http.Get(base + "/x")
	failtest.On(t, err)
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil || res.StatusCode != 200 || string(body) != "{\"ok\":true}\n" || res.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %v %s, %v", res.StatusCode, res.Header, body, err)
	}
	res, err = http.Get(base + "/x?a=" + strings.Repeat("x", MaxQuery+1))
	if err != nil || res.StatusCode != 414 {
		t.Error(res, err)
	}
	if status := rawStatus(t, base, "GET / HTTP/1.1\r\nHost: x\r\nX-Long: "+strings.Repeat("x", 3*maxHeader)+"\r\n\r\n"); status != 431 {
		t.Error(status)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get(base + "/x"); err == nil {
		t.Error("it still answers")
	}
}

func rawStatus(t *testing.T, base, request string) int {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	failtest.On(t, err)
	defer c.Close()
	go io.WriteString(c, request)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	failtest.On(t, err)
	return res.StatusCode
}

// A request in progress is answered before the server stops.
func TestServerDrains(t *testing.T) {
	entered, leave := make(chan struct{}), make(chan struct{})
	base, stop := start(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-leave
	}))
	answered := make(chan string, 1)
	go func() {
		res, err := http.Get(base + "/x")
		if err != nil {
			answered <- err.Error()
			return
		}
		answered <- res.Status
	}()
	<-entered
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	select {
	case err := <-stopped:
		t.Fatal("it stopped before the answer", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(leave)
	if got := <-answered; got != "200 OK" {
		t.Error(got)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

// A panic after the answer has begun breaks the connection off, so that nobody
// takes a part for the whole.
// TestAnswersWithoutEnd: an answer that would last for ever ends when the server stops, and is not cut off.
func TestAnswersWithoutEnd(t *testing.T) {
	base, stop := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.NewResponseController(w).Flush()
		<-Stopping(r)
		io.WriteString(w, "the end")
	}))
	res, err := http.Get(base)
	failtest.On(t, err)
	defer res.Body.Close()
	stopped := make(chan error, 1)
	go func() { stopped <- stop() }()
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != "the end" {
		t.Errorf("%q, %v", body, err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
}

func TestAPanicInTheMiddleOfAnAnswer(t *testing.T) {
	base, _ := start(t, quiet.Guard(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"items":[`, strings.Repeat("{},", 32<<10))
		panic("in the middle")
	})))
	res, err := http.Get(base + "/x")
	if err == nil {
		_, err = io.ReadAll(res.Body)
	}
	if err == nil {
		t.Error("the answer looks whole")
	}
}

func TestListenSaysWhatIsWrong(t *testing.T) {
	s, err := Listen("127.0.0.1:0", Bounds{}, http.NotFoundHandler(), nil)
	failtest.On(t, err)
	if _, err := Listen(s.Addr().String(), Bounds{}, http.NotFoundHandler(), nil); err == nil || !strings.Contains(err.Error(), s.Addr().String()) {
		t.Error(err)
	}
	s.listener.Close()
	if err := s.Run(context.Background()); err == nil {
		t.Error("it serves on a closed listener")
	}
}
