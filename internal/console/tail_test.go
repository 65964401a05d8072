package console

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/events"
	"weir/internal/failtest"
	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/reader"
	"weir/internal/value"
)

// reviews writes so many reviews of one product at once.
func (w *world) reviews(product string, n int, words string) { w.reviewsFrom(product, 0, n, words) }

// reviewsFrom is reviews of users from a number on.
func (w *world) reviewsFrom(product string, from, n int, words string) {
	w.t.Helper()
	cs := make([]ingest.Command, n)
	for i := range cs {
		cs[i] = ingest.Command{Op: ingest.Put, Entity: "Review", Item: review(product, fmt.Sprintf("u%05d", from+i)).With(value.Attr{Name: "words", Value: value.OfString(words)})}
	}
	to := &ingest.Writer{Model: w.part.Model, Store: w.s.Store, Brief: true}
	for _, res := range to.Do(w.t.Context(), cs) {
		if res.Err != nil {
			w.t.Fatal(res.Err)
		}
	}
}

// serve serves the console with small buffers, so that a browser that does not read stops the
// server's writes at once.
func (w *world) serve() *httptest.Server {
	s := httptest.NewUnstartedServer(w.c)
	s.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		c.(*net.TCPConn).SetWriteBuffer(4096)
		return ctx
	}
	s.Start()
	w.t.Cleanup(s.Close)
	return s
}

// tail opens a tail as a browser with a small buffer, and reads the headers.
func (w *world) tail(s *httptest.Server, path string) (net.Conn, *bufio.Reader) {
	w.t.Helper()
	c, err := net.Dial("tcp", s.Listener.Addr().String())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { c.Close() })
	c.(*net.TCPConn).SetReadBuffer(4096)
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n", path)
	in := bufio.NewReaderSize(c, 16)
	for line := "x"; strings.TrimSpace(line) != ""; {
		if line, err = in.ReadString('\n'); err != nil {
			w.t.Fatal(err)
		}
	}
	return c, in
}

var (
	aRecord = regexp.MustCompile(`<tr><td class="when">`)
	missing = regexp.MustCompile(`(\d+) records are not shown`)
)

// count counts the records in what a tail sent, and those that it says are missing.
func count(text string) (shown, missed int) {
	for _, found := range missing.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(found[1])
		missed += n
	}
	return len(aRecord.FindAllString(text, -1)), missed
}

// TestSlowBrowser: a browser that reads one byte a second holds the follower up for no time, has a
// bounded number of records waiting, and is told how many it missed: shown and missed are all.
func TestSlowBrowser(t *testing.T) {
	w := open(t)
	w.put("Product", texts("pot", "Tea pot"))
	w.derive()
	s := w.serve()
	conn, in := w.tail(s, "/console/shop/tail/events")
	_, before := w.seen.models["shop"].last()
	w.reviews("pot", 6000, strings.Repeat("w", 300))

	total := func() int {
		_, now := w.seen.models["shop"].last()
		return int(now - before)
	}
	var got strings.Builder
	var mu sync.Mutex
	slow, read, start := make(chan struct{}), make(chan struct{}), time.Now()
	go func() { // one byte a second, until slow is closed
		defer close(read)
		for {
			b, err := in.ReadByte()
			if err != nil {
				return
			}
			mu.Lock()
			got.WriteByte(b)
			mu.Unlock()
			select {
			case <-slow:
				return
			case <-time.After(time.Second):
			}
		}
	}()
	var spent, longest time.Duration
	publish := w.seen.Records("shop")
	f := reader.Follower{Runner: w.part.Runner, Applied: func(of *model.Table, records []events.Record) {
		began := time.Now()
		publish(of, records)
		took := time.Since(began)
		spent, longest = spent+took, max(longest, took)
	}}
	done := make(chan struct{})
	close(done)
	failtest.On(t, f.CatchUp(t.Context(), done))
	if longest > 5*time.Second {
		t.Errorf("the follower waited %v for the tail, once for %v", spent, longest)
	}
	time.Sleep(2 * tailEvery) // whatever waits could have been sent
	h := w.seen.models["shop"]
	h.mu.Lock()
	for sub := range h.subs {
		if len(sub.queue.all) == 0 || len(sub.queue.all) > maxQueued || sub.queue.bytes > maxQueueBytes {
			t.Errorf("%d records of %d bytes wait for the slow browser", len(sub.queue.all), sub.queue.bytes)
		}
	}
	if len(h.recent.all) > maxKept || h.recent.bytes > maxKeptBytes {
		t.Errorf("%d records are kept", len(h.recent.all))
	}
	h.mu.Unlock()
	close(slow)
	<-read
	mu.Lock()
	if n := got.Len(); n == 0 || n > 2+int(time.Since(start).Seconds()) {
		t.Errorf("the slow browser has read %d bytes", n)
	}
	mu.Unlock()

	deadline := time.Now().Add(time.Minute) // now it reads as fast as it can
	conn.SetReadDeadline(deadline)
	all, shown, missed, records := got.String(), 0, 0, total()
	for shown+missed < records && time.Now().Before(deadline) {
		line, err := in.ReadString('\n')
		if err != nil {
			break
		}
		all += line
		if strings.HasPrefix(line, "data: ") {
			a, b := count(line)
			shown, missed = shown+a, missed+b
		}
	}
	if shown+missed != records || missed == 0 || shown == 0 {
		t.Errorf("%d records are shown and %d are said to be missing, of %d; it ends with\n%.500s", shown, missed, records, all[max(0, len(all)-500):])
	}
}

// TestTailGoesOn: a browser that comes back gets what it has not seen, and a line for what is not
// there any more, also if the program was started again.
func TestTailGoesOn(t *testing.T) {
	w := open(t)
	w.put("Product", texts("pot", "Tea pot"))
	w.put("Review", review("pot", "ida"))
	w.derive()
	s := w.serve()
	at := regexp.MustCompile(`data-after="([^"]*)"`).FindStringSubmatch(w.page("/console/shop/tail"))[1]
	w.put("Review", review("pot", "bo"))
	w.derive()
	first := func(path string) string {
		conn, in := w.tail(s, path)
		conn.SetReadDeadline(time.Now().Add(400 * time.Millisecond))
		text, _ := io.ReadAll(in)
		return string(text)
	}
	for query, want := range map[string]string{
		"?after=" + at:                    `REVIEW#bo`,
		"?entity=Product&after=" + at:     `reviews</bdi> <del><bdi>1</bdi></del> <ins><bdi>2</bdi></ins>`,
		"?key=bo&after=" + at:             `REVIEW#bo`,
		"?after=another-5":                `was started again`,
		"?key=nothing-has-it&after=" + at: `^[0-9a-f]+\s+: open\s+$`,
	} {
		got := first("/console/shop/tail/events" + query)
		if !regexp.MustCompile(want).MatchString(got) || strings.Contains(got, "REVIEW#ida") {
			t.Errorf("%s: not %s in\n%s", query, want, got)
		}
	}
	h := w.seen.models["shop"]
	h.mu.Lock()
	h.recent = queue{}
	h.mu.Unlock()
	if got := first("/console/shop/tail/events?after=" + at); !missing.MatchString(got) {
		t.Errorf("nothing says that records are missing in\n%s", got)
	}
}

// TestTails: only so many are open at once, and one that ends makes room.
func TestTails(t *testing.T) {
	w := open(t)
	s := w.serve()
	var conns []net.Conn
	for range maxTails {
		c, _ := w.tail(s, "/console/shop/tail/events")
		conns = append(conns, c)
	}
	if a := w.ask("GET", "/console/shop/tail/events"); a.Code != http.StatusServiceUnavailable {
		t.Errorf("one tail too many: %d", a.Code)
	}
	conns[0].Close()
	for range 100 {
		if len(w.c.tails) < maxTails {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("a tail that ended still counts")
}
