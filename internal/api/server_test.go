package api

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"weir/internal/value"
)

// start serves on a free port until the test ends, or stop is called.
func start(t *testing.T, h http.Handler) (base string, stop func() error) {
	t.Helper()
	s, err := Listen("127.0.0.1:0", h, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	stop = func() error { cancel(); return <-done }
	t.Cleanup(cancel)
	return "http://" + s.Addr().String(), stop
}

func TestServer(t *testing.T) {
	r := newRig(t, 400)
	base, stop := start(t, r.api)
	res, err := http.Get(base + "/v1/gallery/albums") // the client asks for gzip by itself
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil || res.StatusCode != 200 || !res.Uncompressed || strings.Count(string(body), `"id"`) != 400 {
		t.Errorf("%d %v %d bytes, %v", res.StatusCode, res.Header, len(body), err)
	}
	res, err = http.Head(base + "/v1/gallery/albums?limit=1")
	if err != nil || res.StatusCode != 200 || res.Header.Get("Content-Type") != "application/json" {
		t.Error(res, err)
	}
	res, err = http.Get(base + "/v1/gallery/album?albumId=" + strings.Repeat("x", maxQuery+1))
	if err != nil || res.StatusCode != 414 {
		t.Error(res, err)
	}
	if status := rawStatus(t, base, "GET / HTTP/1.1\r\nHost: x\r\nX-Long: "+strings.Repeat("x", 3*maxHeader)+"\r\n\r\n"); status != 431 {
		t.Error(status)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if _, err := http.Get(base + "/healthz"); err == nil {
		t.Error("it still answers")
	}
}

func rawStatus(t *testing.T, base, request string) int {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(base, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	go io.WriteString(c, request)
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode
}

// A request in progress is answered before the server stops.
func TestServerDrains(t *testing.T) {
	r := newRig(t, 0)
	entered, leave := make(chan struct{}), make(chan struct{})
	r.serve(faulty{get: func(context.Context) ([]value.Item, error) {
		close(entered)
		<-leave
		return []value.Item{nil}, nil
	}}, r.api.engines[0].Model)
	base, stop := start(t, r.api)
	answered := make(chan string, 1)
	go func() {
		res, err := http.Get(base + "/v1/gallery/album?albumId=x")
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
func TestAPanicInTheMiddleOfAnAnswer(t *testing.T) {
	r := newRig(t, 0)
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"items":[`, strings.Repeat("{},", chunk))
		panic("in the middle")
	})
	base, _ := start(t, r.api.guard(mux))
	res, err := http.Get(base + "/x")
	if err == nil {
		_, err = io.ReadAll(res.Body)
	}
	if err == nil {
		t.Error("the answer looks whole")
	}
}

func TestListenSaysWhatIsWrong(t *testing.T) {
	s, err := Listen("127.0.0.1:0", http.NotFoundHandler(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(s.Addr().String(), http.NotFoundHandler(), nil); err == nil || !strings.Contains(err.Error(), s.Addr().String()) {
		t.Error(err)
	}
	s.listener.Close()
	if err := s.Run(context.Background()); err == nil {
		t.Error("it serves on a closed listener")
	}
}
