package web

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"
)

// served is a server with small bounds and a key, until the test ends. A request to
// /hold is worked on until leave is closed; asked counts the questions of health.
type served struct {
	*Server
	t        *testing.T
	entered  chan struct{}
	leave    chan struct{}
	stop     func()
	cancel   func() // has it stop
	asked    atomic.Int64
	bodyRead atomic.Int64
}

func serveBounded(t *testing.T, b Bounds) *served {
	t.Helper()
	keys, err := OpenKeys("", keyA, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Listen("127.0.0.1:0", b, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	out := &served{Server: s, t: t, entered: make(chan struct{}, 100), leave: make(chan struct{})}
	s.handle(Access{Keys: keys}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case Health:
			out.asked.Add(1)
		case "/hold":
			out.entered <- struct{}{}
			<-out.leave
		}
		n, _ := io.Copy(io.Discard, r.Body)
		out.bodyRead.Add(n)
		fmt.Fprint(w, "ok")
	}))
	ctx, cancel := context.WithCancel(context.Background())
	out.cancel = cancel
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	out.stop = sync.OnceFunc(func() {
		select {
		case <-out.leave:
		default:
			close(out.leave)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(out.stop)
	return out
}

// dial opens a connection from an address of this machine.
func (s *served) dial(from string) net.Conn {
	s.t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	c, err := d.Dial("tcp", s.Addr().String())
	if errors.Is(err, syscall.EADDRNOTAVAIL) {
		s.t.Skipf("%s is no address of this machine", from)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

const withKey = "Authorization: Bearer " + keyA + "\r\n"

func (s *served) send(c net.Conn, path, headers string) {
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: h\r\n%s\r\n", path, headers)
}

// ask sends a request on a connection and gives the status of the answer, 0 when the
// connection ends instead.
func (s *served) ask(c net.Conn, path, headers string) int {
	s.send(c, path, headers)
	return answer(c)
}

func answer(c net.Conn) int {
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	io.Copy(io.Discard, res.Body)
	res.Body.Close()
	return res.StatusCode
}

func (s *served) want(what string, got, want int) {
	s.t.Helper()
	if got != want {
		s.t.Errorf("%s: %d, want %d", what, got, want)
	}
}

func (s *served) held() (all, spares, headers int) {
	s.listener.mu.Lock()
	defer s.listener.mu.Unlock()
	for c := range s.listener.conns {
		if all++; c.spare {
			spares++
		}
	}
	return all, spares, s.listener.headers
}

// hold begins n requests that stay.
func (s *served) hold(n int, from string) (held []net.Conn) {
	for range n {
		c := s.dial(from)
		s.send(c, "/hold", withKey)
		<-s.entered
		held = append(held, c)
	}
	return held
}

// TestIdleConnectionsGiveWay: however many connections say nothing, whoever has a key
// is answered, and no more are open than may be.
func TestIdleConnectionsGiveWay(t *testing.T) {
	s := serveBounded(t, Bounds{Connections: 8, PerAddress: 8})
	known := s.dial("127.0.0.2")
	s.want("with a key", s.ask(known, "/x", withKey), 200)
	for range 5 {
		for range 10 {
			s.dial("127.0.0.1")
		}
		slow := s.dial("127.0.0.1")
		fmt.Fprint(slow, "GET /x HTTP/1.1\r\nHost:") // the rest never comes
		s.want("with a key, among silent ones", s.ask(s.dial("127.0.0.3"), "/x", withKey), 200)
		if all, spares, _ := s.held(); all > 8+spare || spares > spare {
			t.Errorf("%d connections are open, %d of them spare", all, spares)
		}
	}
	s.want("one that has shown its key", s.ask(known, "/x", withKey), 200)
}

// TestOneAddressDoesNotTakeAll: the connections of one address give way to its own.
func TestOneAddressDoesNotTakeAll(t *testing.T) {
	s := serveBounded(t, Bounds{Connections: 8, PerAddress: 4})
	s.hold(4, "127.0.0.1")
	s.want("the fifth of one address", s.ask(s.dial("127.0.0.1"), "/x", withKey), 503)
	idle := s.dial("127.0.0.2")
	s.want("another address", s.ask(idle, "/x", withKey), 200)
	for range 4 {
		s.dial("127.0.0.3")
	}
	s.want("an address among others", s.ask(s.dial("127.0.0.4"), "/x", withKey), 200)
	s.want("one that waits for its next request", s.ask(idle, "/x", withKey), 200)
}

// TestRequestsAreNeverCutOff: where all connections are at work none gives way. Then
// health is answered, and others are refused, on spare connections.
func TestRequestsAreNeverCutOff(t *testing.T) {
	s := serveBounded(t, Bounds{Connections: 3, PerAddress: 3})
	held := s.hold(3, "127.0.0.1")
	for range spare {
		s.want("beyond all connections", s.ask(s.dial("127.0.0.1"), "/x", withKey), 503)
		s.dial("127.0.0.1") // says nothing
		s.want("health", s.ask(s.dial("127.0.0.2"), Health, ""), 200)
	}
	if all, spares, _ := s.held(); spares > spare || all > 3+spare {
		t.Errorf("%d connections, %d of them spare", all, spares)
	}
	close(s.leave)
	for _, c := range held {
		s.want("one that was worked on", answer(c), 200)
	}
}

// TestWithoutAKey: a refusal is all that a client without a key costs. Its body is not
// read, its connection ends, and its headers are no way to fill the memory.
func TestWithoutAKey(t *testing.T) {
	s := serveBounded(t, Bounds{Headers: 64 << 10})
	c := s.dial("127.0.0.1")
	fmt.Fprintf(c, "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 200000\r\n\r\n%s", strings.Repeat("x", 1000))
	s.want("a body of which the rest never comes", answer(c), 401)
	if _, err := c.Read(make([]byte, 1)); err == nil || strings.Contains(err.Error(), "timeout") {
		t.Errorf("the connection stays: %v", err)
	}
	if n := s.bodyRead.Load(); n > 0 {
		t.Errorf("%d bytes of the body reached a handler", n)
	}
	for range 20 {
		fmt.Fprintf(s.dial("127.0.0.1"), "GET /x HTTP/1.1\r\nHost: h\r\nX: %s", strings.Repeat("x", 60<<10))
	}
	s.want("with a key, beside long headers", s.ask(s.dial("127.0.0.1"), "/x", withKey), 200)
	if _, _, headers := s.held(); headers > 64<<10 {
		t.Errorf("%d bytes of headers are held", headers)
	}
	c = s.dial("127.0.0.1")
	fmt.Fprint(c, "OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n")
	s.want("OPTIONS *", answer(c), 401)
	for _, from := range []struct {
		method, headers string
		want            int
	}{
		{"POST", "Origin: http://evil.example\r\n", 403}, {"PUT", "Sec-Fetch-Site: cross-site\r\n", 403}, {"POST", "Origin: http://h\r\n", 200},
		{"POST", "", 200}, {"GET", "Origin: http://evil.example\r\n", 200},
	} {
		c := s.dial("127.0.0.1")
		fmt.Fprintf(c, "%s /x HTTP/1.1\r\nHost: h\r\n%s%sContent-Length: 0\r\n\r\n", from.method, withKey, from.headers)
		s.want(from.method+" "+from.headers, answer(c), from.want)
	}
	for range 50 {
		s.want("health", s.ask(s.dial("127.0.0.1"), Health, ""), 200)
	}
	if n := s.asked.Load(); n > 10 {
		t.Errorf("50 health checks asked the store %d times", n)
	}
}

// TestRequestsAreBounded: what comes above the bound waits, and is refused when it
// waits too long; what was refused can be asked again.
func TestRequestsAreBounded(t *testing.T) {
	s := serveBounded(t, Bounds{Requests: 2, Wait: 30 * time.Millisecond})
	held := s.hold(2, "127.0.0.1")
	s.want("the third", s.ask(s.dial("127.0.0.1"), "/x", withKey), 503)
	s.want("health", s.ask(s.dial("127.0.0.1"), Health, ""), 200)
	s.want("without a key", s.ask(s.dial("127.0.0.1"), "/x", ""), 401)
	close(s.leave)
	for _, c := range held {
		s.want("one that was worked on", answer(c), 200)
	}
	s.want("when the others ended", s.ask(s.dial("127.0.0.1"), "/x", withKey), 200)
}

// TestBodiesAreBounded: the bytes of bodies that are worked on have a bound, and a body
// that does not tell its length counts as the longest.
func TestBodiesAreBounded(t *testing.T) {
	s := serveBounded(t, Bounds{Bodies: 2 << 20, Wait: 30 * time.Millisecond})
	post := func(headers, body string) net.Conn {
		c := s.dial("127.0.0.1")
		fmt.Fprintf(c, "POST /hold HTTP/1.1\r\nHost: h\r\n%s%s\r\n%s", withKey, headers, body)
		return c
	}
	post("Content-Length: 1048576\r\n", strings.Repeat("x", 1<<20))
	<-s.entered
	post("Transfer-Encoding: chunked\r\n", "1\r\nx\r\n0\r\n\r\n")
	<-s.entered
	s.want("a third body", answer(post("Content-Length: 10\r\n", "0123456789")), 503)
	s.want("no body", s.ask(s.dial("127.0.0.1"), "/x", withKey), 200)
}

// TestUploadsThatWaitRefuseNoReads: while bodies wait for others to end, a request
// without one is worked on at once, and they keep no request from being so.
func TestUploadsThatWaitRefuseNoReads(t *testing.T) {
	l := newLoad(Bounds{Requests: 2, Bodies: longestBody, Wait: 5 * time.Second})
	upload := func() *http.Request {
		return httptest.NewRequest(http.MethodPost, "/x", strings.NewReader(strings.Repeat("x", longestBody)))
	}
	leave, full := l.enter(httptest.NewRecorder(), upload())
	if full != "" {
		t.Fatal(full)
	}
	waits := make(chan string)
	go func() {
		leave, full := l.enter(httptest.NewRecorder(), upload())
		if full == "" {
			leave()
		}
		waits <- full
	}()
	until(t, func() bool { return len(l.bodies.turn) == 1 })
	for range 10 {
		leave, full := l.enter(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/x", nil))
		if full != "" {
			t.Fatal(full)
		}
		leave()
	}
	leave()
	if full := <-waits; full != "" {
		t.Error(full)
	}
}

// trickle begins n uploads of which hardly anything comes.
func (s *served) trickle(n int, headers string) (held []net.Conn) {
	for range n {
		c := s.dial("127.0.0.1")
		fmt.Fprintf(c, "POST /slow HTTP/1.1\r\nHost: h\r\n%s%s\r\n", withKey, headers)
		held = append(held, c)
	}
	return held
}

// upload sends a whole body of so many bytes and gives the status of the answer.
func (s *served) upload(size int) int {
	c := s.dial("127.0.0.1")
	fmt.Fprintf(c, "POST /x HTTP/1.1\r\nHost: h\r\n%sContent-Length: %d\r\n\r\n%s", withKey, size, strings.Repeat("x", size))
	return answer(c)
}

// TestSlowBodiesHoldNoRequest: more uploads that come slowly than requests are worked on
// at once keep no other request waiting, with a body or without.
func TestSlowBodiesHoldNoRequest(t *testing.T) {
	s := serveBounded(t, Bounds{Requests: 2, Wait: 100 * time.Millisecond})
	slow := s.trickle(20, "Content-Length: 10\r\n")
	until(t, func() bool { return s.load.arriving.count() == len(slow) })
	for range 10 {
		s.want("no body, beside slow ones", s.ask(s.dial("127.0.0.1"), "/x", withKey), 200)
		s.want("a whole body, beside slow ones", s.upload(1000), 200)
	}
	for i, c := range slow {
		fmt.Fprint(c, "0123456789")
		s.want(fmt.Sprint("slow one ", i, ", when its rest comes"), answer(c), 200)
	}
	if n := s.bodyRead.Load(); n != 10*1000+20*10 {
		t.Errorf("handlers read %d bytes", n)
	}
}

// TestSlowBodiesGiveWay: where slow uploads have all the bytes that bodies may have, they
// give way to one that comes. They are told so, and others stay.
func TestSlowBodiesGiveWay(t *testing.T) {
	s := serveBounded(t, Bounds{Bodies: 2 << 20})
	slow := s.trickle(2, "Transfer-Encoding: chunked\r\n")
	until(t, func() bool { return s.load.arriving.count() == len(slow) })
	s.want("a whole body, beside slow ones that have all bytes", s.upload(1000), 200)
	until(t, func() bool { return s.load.arriving.count() == len(slow)-1 })
	codes := make(chan int, len(slow))
	for _, c := range slow {
		go func() { codes <- answer(c) }()
	}
	s.want("the one that gave way", <-codes, 503)
	for _, c := range slow { // the one that stays can go on
		fmt.Fprint(c, "1\r\nx\r\n0\r\n\r\n")
	}
	s.want("the one that stays", <-codes, 200)
}

// TestTooLargeABody: a handler learns that a body is longer than any may be.
// TestOneSlowBodyAtATime: however many requests wait, one slow body gives way at a time.
func TestOneSlowBodyAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s arrivals
		gave := 0
		for range 30 {
			s.add(&arrival{since: time.Now(), end: func() { gave++ }})
		}
		time.Sleep(2 * slowAfter)
		var stops []func()
		for range 20 {
			stops = append(stops, s.press())
		}
		time.Sleep(3*slowLook + slowLook/2)
		for _, stop := range stops {
			stop()
		}
		synctest.Wait()
		if gave != 3 {
			t.Errorf("%d gave way, want 3", gave)
		}
		time.Sleep(3 * slowLook)
		if synctest.Wait(); gave != 3 {
			t.Errorf("%d gave way after nothing waited any more", gave)
		}
		stop := s.press()
		time.Sleep(slowLook + slowLook/2)
		stop()
		if synctest.Wait(); gave != 4 {
			t.Errorf("%d gave way, want 4 when one waits again", gave)
		}
	})
}

// TestBodiesInPieces: a body is held in the memory that it counts as, and its end or
// error is found behind it.
func TestBodiesInPieces(t *testing.T) {
	cut := errors.New("cut")
	for _, length := range []int{0, 1, 511, piece - 1, piece, piece + 1, 300_000, longestBody - 1, longestBody, longestBody + 1} {
		want := bytes.Repeat([]byte("body"), length/4+1)[:length]
		for _, known := range []bool{true, false} {
			for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, cut} {
				told := int64(-1)
				if known {
					told = int64(length)
				}
				parts, err := inPieces(io.MultiReader(iotest.HalfReader(bytes.NewReader(want)), iotest.ErrReader(end)), told)
				if end == io.EOF && err != nil || end != io.EOF && err != end {
					t.Fatalf("%d bytes that end with %v: %v", length, end, err)
				}
				if got := bytes.Join(parts, nil); !bytes.Equal(got, want) {
					t.Fatalf("%d bytes of %d", len(got), length)
				}
				held, most := 0, longestBody+piece
				for _, p := range parts {
					held += cap(p)
				}
				if known {
					most = length + 1
				}
				if held > most {
					t.Errorf("%d bytes, told %d, hold %d of memory, more than %d", length, told, held, most)
				}
			}
		}
	}
}

func TestTooLargeABody(t *testing.T) {
	var got int64
	l := newLoad(Bounds{})
	h := l.wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, err := io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, longestBody))
		got = n
		if large := (*http.MaxBytesError)(nil); !errors.As(err, &large) {
			t.Errorf("error %v", err)
		}
	}))
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/x", strings.NewReader(strings.Repeat("x", 3*longestBody))))
	if got != longestBody {
		t.Errorf("%d bytes", got)
	}
}

// count is how many bodies are being read.
func (s *arrivals) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

func TestPool(t *testing.T) {
	p := newPool(3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // what is free is had even so
	for range 100 {
		if !p.take(ctx, 2) || p.take(ctx, 2) || !p.take(ctx, 1) || !p.take(ctx, 0) {
			t.Fatal("three are not three")
		}
		p.give(3)
	}
	p.take(ctx, 3)
	took := make(chan bool)
	go func() { took <- p.take(t.Context(), 3) }()
	p.give(1)
	p.give(2)
	if !<-took {
		t.Error("what was given back is gone")
	}
}

func TestOrigin(t *testing.T) {
	for addr, want := range map[string]string{
		"10.1.2.3:99": "10.1.2.3/32", "[2001:db8:1:2:3::4]:99": "2001:db8:1:2::/64", "[::ffff:10.1.2.3]:5": "10.1.2.3/32", "[::1]:5": "::1/128",
	} {
		a, err := net.ResolveTCPAddr("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		if got := origin(a).String(); got != want {
			t.Errorf("%s: %s", addr, got)
		}
	}
}

// TestThisMachineMayHaveAll: by IPv6 too.
func TestThisMachineMayHaveAll(t *testing.T) {
	for addr, want := range map[string]int{"127.0.0.1": 8, "::1": 8, "::ffff:127.0.0.1": 8, "::2": 4, "10.0.0.1": 4} {
		if got := (Bounds{Connections: 8}).of(origin(&net.TCPAddr{IP: net.ParseIP(addr)})); got != want {
			t.Errorf("%s may have %d, want %d", addr, got, want)
		}
	}
}

// TestSilentClientsHoldNothingUp: a server that stops waits for those that it works
// for, and for nobody who has only come. A request that does not arrive is given up.
func TestSilentClientsHoldNothingUp(t *testing.T) {
	s := serveBounded(t, Bounds{})
	s.listener.linger = time.Millisecond
	s.dial("127.0.0.1")
	fmt.Fprint(s.dial("127.0.0.1"), "GET /x HTTP/1.1\r\n")
	held := s.hold(1, "127.0.0.1")
	s.stopping()
	s.listener.Close() // waits for the one that stops it
	if all, _, _ := s.held(); all != 1 {
		t.Errorf("%d connections are open, and one is worked for", all)
	}
	close(s.leave)
	s.want("one that is worked on", answer(held[0]), 200)
}

// TestArrivingRequestsAreServed: a server that stops lets in what has begun to arrive,
// on a connection that was used before too, and takes no further connection.
func TestArrivingRequestsAreServed(t *testing.T) {
	s := serveBounded(t, Bounds{})
	s.listener.linger = time.Minute
	used, fresh := s.dial("127.0.0.1"), s.dial("127.0.0.1")
	s.want("the first request", s.ask(used, "/x", withKey), 200)
	const head = "GET /x HTTP/1.1\r\nHost: h\r\n" + withKey
	for _, c := range []net.Conn{used, fresh} {
		fmt.Fprint(c, head)
	}
	until(s.t, func() bool { return s.arriving() == 2 })
	s.stopping()
	for _, c := range []net.Conn{used, fresh} {
		fmt.Fprint(c, "\r\n")
		s.want("a request that was arriving", answer(c), 200)
	}
	late, _ := net.Pipe()
	if s.listener.admit(late) != nil {
		t.Error("a server that stops takes a connection")
	}
}

// stopping has the server begin to stop.
func (s *served) stopping() {
	s.t.Helper()
	s.cancel()
	until(s.t, func() bool {
		s.listener.mu.Lock()
		defer s.listener.mu.Unlock()
		return s.listener.stopped
	})
}

// until waits for something that happens soon.
func until(t *testing.T, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not happen")
		}
	}
}

// arriving is how many connections have sent a part of a request.
func (s *served) arriving() (n int) {
	s.listener.mu.Lock()
	defer s.listener.mu.Unlock()
	for c := range s.listener.conns {
		if c.header > 0 {
			n++
		}
	}
	return n
}

// TestWhichGivesWay: strangers before those with keys, of strangers the address that
// has most, then the oldest; those that wait for their next request at last.
func TestWhichGivesWay(t *testing.T) {
	l := bound(nil, Bounds{}, slog.New(slog.DiscardHandler))
	began := time.Now()
	for i, c := range []struct {
		from        string
		known, busy bool
	}{
		{"10.0.0.9:1", false, true}, {"10.0.0.1:1", true, false}, {"10.0.0.2:1", false, false},
		{"10.0.0.3:1", false, false}, {"10.0.0.3:2", false, false}, {"10.0.0.1:2", true, false},
	} {
		a := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.from))
		l.conns[&conn{of: l, from: origin(a), known: c.known, busy: c.busy, since: began.Add(time.Duration(i)), header: i}] = struct{}{}
	}
	var order []int
	for {
		c := l.victim(func(*conn) bool { return true })
		if c == nil {
			break
		}
		order = append(order, c.header)
		delete(l.conns, c)
	}
	if got := fmt.Sprint(order); got != "[3 2 4 1 5]" {
		t.Error(got)
	}
}

// TestKnownConnectionsGiveWayToo: a connection that was used and waits for its next
// request gives way when there is no stranger to.
func TestKnownConnectionsGiveWayToo(t *testing.T) {
	s := serveBounded(t, Bounds{Connections: 3, PerAddress: 3})
	for range 10 {
		s.want("one of many that are kept", s.ask(s.dial("127.0.0.1"), "/x", withKey), 200)
	}
}
