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

	"weir/internal/failtest"
	"weir/internal/memory"
)

// served is a server with small bounds and a key, until the test ends. A request to
// /hold is worked on until leave is closed.
type served struct {
	*Server
	t        *testing.T
	entered  chan struct{}
	leave    chan struct{}
	stop     func()
	bodyRead atomic.Int64
}

func serveBounded(t *testing.T, b Bounds) *served {
	t.Helper()
	keys, err := OpenKeys("", keyA, nil)
	failtest.On(t, err)
	s, err := Listen("127.0.0.1:0", b, nil, slog.New(slog.DiscardHandler))
	failtest.On(t, err)
	out := &served{Server: s, t: t, entered: make(chan struct{}, 100), leave: make(chan struct{})}
	s.handle(Access{Keys: keys}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/hold" {
			out.entered <- struct{}{}
			<-out.leave
		}
		n, _ := io.Copy(io.Discard, r.Body)
		out.bodyRead.Add(n)
		fmt.Fprint(w, "ok")
	}))
	ctx, cancel := context.WithCancel(context.Background())
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

func (s *served) held() (all, headers int) {
	s.listener.mu.Lock()
	defer s.listener.mu.Unlock()
	return len(s.listener.conns), s.listener.headers
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
		if all, _ := s.held(); all > 8 {
			t.Errorf("%d connections are open", all)
		}
	}
	s.want("one that has shown its key", s.ask(known, "/x", withKey), 200)
}

// TestOneAddressDoesNotTakeAll: the connections of one address give way to its own.
func TestOneAddressDoesNotTakeAll(t *testing.T) {
	s := serveBounded(t, Bounds{Connections: 8, PerAddress: 4})
	idle := s.dial("127.0.0.2")
	s.want("another address", s.ask(idle, "/x", withKey), 200)
	s.hold(2, "127.0.0.1")
	for range 20 {
		s.dial("127.0.0.1")
	}
	if all, _ := s.held(); all > 5 {
		t.Errorf("%d connections are open", all)
	}
	s.want("one that waits for its next request", s.ask(idle, "/x", withKey), 200)
}

// TestRequestsAreNeverCutOff: of as many requests as are worked on, none gives way, and health is answered beside them.
func TestRequestsAreNeverCutOff(t *testing.T) {
	s := serveBounded(t, Bounds{Connections: 7, PerAddress: 7, Wait: 30 * time.Millisecond})
	held := s.hold(3, "127.0.0.1")
	for range 8 {
		s.want("beyond all requests", s.ask(s.dial("127.0.0.1"), "/x", withKey), 503)
		s.dial("127.0.0.1") // says nothing
		s.want("health", s.ask(s.dial("127.0.0.2"), Health, ""), 200)
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
	if _, headers := s.held(); headers > 64<<10 {
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

// TestBodiesAreBounded: the bytes of bodies that are worked on have a bound, whether a body tells its length or not.
func TestBodiesAreBounded(t *testing.T) {
	s := serveBounded(t, Bounds{Bodies: 2 << 20, Wait: 30 * time.Millisecond})
	post := func(path, headers, body string) net.Conn {
		c := s.dial("127.0.0.1")
		fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: h\r\n%s%s\r\n%s", path, withKey, headers, body)
		return c
	}
	large := strings.Repeat("x", 1<<20)
	post("/hold", "Content-Length: 1048576\r\n", large)
	<-s.entered
	s.want("a second one", answer(post("/x", "Transfer-Encoding: chunked\r\n", "100000\r\n"+large+"\r\n0\r\n\r\n")), 503)
	s.want("a small one", answer(post("/x", "Content-Length: 10\r\n", "0123456789")), 200)
	s.want("no body", s.ask(s.dial("127.0.0.1"), "/x", withKey), 200)
	close(s.leave)
	until(t, func() bool { return len(s.load.pieces) == 0 })
}

// TestBodiesAreOfTheMemory: bodies have a share of the process's memory, and at least one has room.
func TestBodiesAreOfTheMemory(t *testing.T) {
	for size, want := range map[memory.Size]int{0: 8 << 20, memory.Default: 8 << 20, memory.Least: 4 << 20, memory.GB: 32 << 20, memory.MB: longestBody + piece} {
		s, err := Flags{Open: true}.Serve("127.0.0.1:0", Limits{}, memory.Need{}, size, http.NotFoundHandler(), slog.New(slog.DiscardHandler))
		failtest.On(t, err)
		if got := cap(s.load.pieces) * piece; got != want {
			t.Errorf("%v: %d bytes of bodies, want %d", size, got, want)
		}
		s.Close()
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
	until(t, func() bool { return len(s.load.pieces) == len(slow) })
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

// TestBodiesInPieces: a body is held in pieces, and its end or error is found behind it.
func TestBodiesInPieces(t *testing.T) {
	cut := errors.New("cut")
	for _, length := range []int{1, 511, piece - 1, piece, piece + 1, 300_000, longestBody - 1, longestBody} {
		want := bytes.Repeat([]byte("body"), length/4+1)[:length]
		for _, end := range []error{io.EOF, io.ErrUnexpectedEOF, cut} {
			l := newLoad(Bounds{})
			r := httptest.NewRequest(http.MethodPost, "/x", io.MultiReader(iotest.HalfReader(bytes.NewReader(want)), iotest.ErrReader(end)))
			held, whole := l.read(r)
			if !whole || held != length/piece+1 || len(l.pieces) != held {
				t.Errorf("%d bytes hold %d pieces", length, held)
			}
			got, err := io.ReadAll(r.Body)
			if !bytes.Equal(got, want) || end == io.EOF && err != nil || end != io.EOF && err != end {
				t.Errorf("%d bytes of %d that end with %v: %v", len(got), length, end, err)
			}
		}
	}
}

// TestTooLargeABody: a handler learns that a body is longer than any may be.
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

func TestOrigin(t *testing.T) {
	for addr, want := range map[string]string{
		"10.1.2.3:99": "10.1.2.3/32", "[2001:db8:1:2:3::4]:99": "2001:db8:1:2::/64", "[::ffff:10.1.2.3]:5": "10.1.2.3/32", "[::1]:5": "::1/128",
	} {
		a, err := net.ResolveTCPAddr("tcp", addr)
		failtest.On(t, err)
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

// until waits for something that happens soon.
func until(t *testing.T, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not happen")
		}
	}
}

// TestWhichGivesWay: strangers before those with keys, of strangers the address that
// has most, then the oldest; those that wait for their next request at last.
func TestWhichGivesWay(t *testing.T) {
	l := boundListener(nil, Bounds{}, slog.New(slog.DiscardHandler))
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

// still is a connection from an address that says nothing.
type still struct {
	net.Conn
	from  net.Addr
	ended bool
}

func (s *still) RemoteAddr() net.Addr { return s.from }
func (s *still) Close() error         { s.ended = true; return nil }

// come has a connection admitted from an address.
func come(t *testing.T, l *listener, from string) *conn {
	t.Helper()
	k := l.admitConn(&still{from: &net.TCPAddr{IP: net.ParseIP(from), Port: 1}})
	if k == nil {
		t.Fatal("it is not taken")
	}
	return k
}

func ended(c *conn) bool { return c.Conn.(*still).ended }

func older(cs ...*conn) {
	for _, c := range cs {
		c.since = c.since.Add(-time.Hour)
	}
}

func fullListener() *listener {
	return boundListener(nil, Bounds{Connections: 3, PerAddress: 2}, slog.New(slog.DiscardHandler))
}

// TestNobodyWaitsToBeTaken: a connection is taken at once, in place of the oldest stranger of its address or, where all
// are too many, of the address that has most of them. A request that is worked on stays.
func TestNobodyWaitsToBeTaken(t *testing.T) {
	l := fullListener()
	a, b := come(t, l, "10.0.0.1"), come(t, l, "10.0.0.1")
	older(a)
	third := come(t, l, "10.0.0.1")
	come(t, l, "10.0.0.2")
	if !ended(a) || ended(b) {
		t.Error("not the oldest of its address gives way")
	}
	older(b)
	if come(t, l, "10.0.0.3"); !ended(b) || ended(third) {
		t.Error("not the oldest of the address that has most gives way")
	}
	third.letIn()
	if !third.beginRequest() {
		t.Fatal("it has given way")
	}
	for range 5 {
		come(t, l, "10.0.0.1")
	}
	if b.letIn(); ended(third) || len(l.conns) != 3 || b.beginRequest() {
		t.Errorf("ended %t, of %d", ended(third), len(l.conns))
	}
}

// TestStrangersGrowOld: requests that are not let in, health checks too, make a
// connection no younger.
func TestStrangersGrowOld(t *testing.T) {
	l := fullListener()
	a, b := come(t, l, "10.0.0.1"), come(t, l, "10.0.0.1")
	older(a)
	l.state(a, http.StateIdle)
	if come(t, l, "10.0.0.1"); !ended(a) || ended(b) {
		t.Error("a stranger is renewed by what was not let in")
	}
	b.letIn()
	b.beginRequest()
	older(b)
	if l.state(b, http.StateIdle); b.busy || time.Since(b.since) > 30*time.Minute {
		t.Error("the end of a request that was let in does not count")
	}
}

// TestHealthChecksHoldUpNobody: clients of one address that ask for health again and
// again on as many connections as it may have stop neither its own nor others.
func TestHealthChecksHoldUpNobody(t *testing.T) {
	s := serveBounded(t, Bounds{Connections: 16, PerAddress: 4})
	for range 4 {
		c := s.dial("127.0.0.1")
		go func() {
			for in := bufio.NewReader(c); ; time.Sleep(time.Millisecond) {
				fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", Health)
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					return
				}
				io.Copy(io.Discard, res.Body)
			}
		}()
	}
	until(t, func() bool { all, _ := s.held(); return all == 4 })
	s.want("a fifth", s.ask(s.dial("127.0.0.1"), Health, ""), 200)
	s.want("with a key", s.ask(s.dial("127.0.0.1"), "/x", withKey), 200)
	s.dial("127.0.0.1") // says nothing
	s.want("another address", s.ask(s.dial("127.0.0.2"), "/x", withKey), 200)
}

// TestSilentClientsDisplaceNoKeys: however many come and say nothing, those that have
// shown a key stay, but one that gives way to another with a key.
func TestSilentClientsDisplaceNoKeys(t *testing.T) {
	s := serveBounded(t, Bounds{Connections: 4, PerAddress: 4})
	var kept []net.Conn
	for range 4 {
		c := s.dial("127.0.0.2")
		s.want("one that is kept", s.ask(c, "/x", withKey), 200)
		kept = append(kept, c)
	}
	for range 20 {
		s.dial("127.0.0.1")
	}
	s.want("a new client with a key", s.ask(s.dial("127.0.0.3"), "/x", withKey), 200)
	stay := 0
	for _, c := range kept {
		if s.ask(c, "/x", withKey) == 200 {
			stay++
		}
	}
	s.want("of those that were kept", stay, 3)
}

// TestHealthy: health checks ask the store once a second, and say whether it answers.
func TestHealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, is := 0, error(nil)
		h := Talk{slog.New(slog.DiscardHandler)}.Healthy(func(context.Context) error { asked++; return is })
		status := func() int {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, Health, nil))
			return w.Code
		}
		for range 50 {
			if got := status(); got != 200 || asked != 1 {
				t.Fatal(got, asked)
			}
		}
		is = io.ErrClosedPipe
		time.Sleep(probeEvery)
		if got := status(); got != 503 || asked != 2 {
			t.Error(got, asked)
		}
	})
}
