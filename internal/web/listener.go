package web

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// Bounds are the limits of a server, whatever its clients do. A field that is 0
// has its default.
type Bounds struct {
	Connections int           // that are open
	PerAddress  int           // of them, from one address; half of them, and all from this machine
	Requests    int           // that are worked on: fewer than half of the connections, so that one of these can always give way
	Bodies      int           // bytes of the bodies of requests
	Headers     int           // bytes of requests that are not let in yet
	Wait        time.Duration // how long a request waits for others to end
}

// The limits of a server where nothing else is said.
const (
	defaultConnections = 1024
	defaultRequests    = 128
	defaultBodies      = 8 << 20 // of 256 MB of memory; values that are read from a body, and the answer, take up to 20 times its bytes
	defaultHeaders     = 12 << 20
	defaultWait        = 2 * time.Second
)

// withDefaults replaces the fields that are 0.
func (b Bounds) withDefaults() Bounds {
	b.Connections = cmp.Or(b.Connections, defaultConnections)
	b.Requests = min(cmp.Or(b.Requests, defaultRequests), max(1, (b.Connections-1)/2))
	b.Bodies = cmp.Or(b.Bodies, defaultBodies)
	b.Headers = cmp.Or(b.Headers, defaultHeaders)
	b.Wait = cmp.Or(b.Wait, defaultWait)
	return b
}

// of is how many connections there may be from an address.
func (b Bounds) of(from netip.Prefix) int {
	if b.PerAddress == 0 && from.Addr().IsLoopback() {
		return b.Connections
	}
	return cmp.Or(b.PerAddress, (b.Connections+1)/2)
}

// listener bounds the connections that are open. It never waits for one to end: when there are too many, one on which
// no request is worked on gives way. Those that have shown no key go first: of the address that has most of these,
// the oldest.
type listener struct {
	net.Listener
	bounds Bounds
	log    *slog.Logger

	mu      sync.Mutex
	conns   map[*conn]struct{}
	headers int       // bytes that connections have sent of requests that are not let in yet
	said    time.Time // when it was last logged that connections give way
}

// conn is a connection. Its fields are guarded by its listener's mu.
type conn struct {
	net.Conn
	of   *listener
	from netip.Prefix

	since  time.Time // of its last request that was let in, or of its beginning
	known  bool      // a request of it was let in
	let    bool      // its present request was let in
	busy   bool      // its present request is worked on
	header int       // bytes of its present request, until that is let in
	closed bool
}

// errHeaders says why a connection was closed by the server.
var errHeaders = errors.New("too many bytes of headers are being read")

// boundListener puts bounds around a listener, which it then owns.
func boundListener(l net.Listener, b Bounds, log *slog.Logger) *listener {
	return &listener{Listener: l, bounds: b.withDefaults(), log: log, conns: map[*conn]struct{}{}}
}

// Accept returns connections in the order in which they come. It never waits for one to end.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if k := l.admitConn(c); k != nil {
			return k, nil
		}
		c.Close()
	}
}

// admitConn takes a connection, in place of another where there are too many: of its address, or of all. It is nil if all
// of these are worked for.
func (l *listener) admitConn(c net.Conn) *conn {
	now := time.Now()
	k := &conn{Conn: c, of: l, from: origin(c.RemoteAddr()), since: now}
	mine := func(o *conn) bool { return o.from == k.from }
	l.mu.Lock()
	defer l.mu.Unlock()
	var gives *conn
	switch full, all := l.count(mine) >= l.bounds.of(k.from), len(l.conns) >= l.bounds.Connections; {
	case full:
		gives = l.victim(mine)
	case all:
		gives = l.victim(func(*conn) bool { return true })
	default:
		l.conns[k] = struct{}{}
		return k
	}
	if now.Sub(l.said) > time.Minute {
		l.said = now
		l.log.Warn("there are as many connections as are taken, and those that ask nothing give way",
			"connections", l.bounds.Connections, "perAddress", l.bounds.of(k.from), "from", k.from.Addr())
	}
	if gives == nil {
		return nil
	}
	gives.drop()
	gives.Conn.Close()
	l.conns[k] = struct{}{}
	return k
}

// count is how many connections there are of a kind. mu is held.
func (l *listener) count(of func(*conn) bool) (n int) {
	for c := range l.conns {
		if of(c) {
			n++
		}
	}
	return n
}

// victim is which of some connections gives way, nil when all of them are at work. mu is held.
func (l *listener) victim(of func(*conn) bool) *conn {
	strangers := map[netip.Prefix]int{}
	var idle []*conn
	for o := range l.conns {
		if o.busy || !of(o) {
			continue
		}
		if idle = append(idle, o); !o.known {
			strangers[o.from]++
		}
	}
	if len(idle) == 0 {
		return nil
	}
	rank := func(o *conn) int {
		if o.known {
			return 0
		}
		return strangers[o.from]
	}
	return slices.MinFunc(idle, func(a, b *conn) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), a.since.Compare(b.since))
	})
}

// origin is whom a connection is counted for: an address, of IPv6 the network that one
// customer has, unless it is this machine.
func origin(a net.Addr) netip.Prefix {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := t.AddrPort().Addr().Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() && !ip.IsLoopback() {
		bits = 64
	}
	p, _ := ip.Prefix(bits)
	return p
}

// Close may be called at any time and by any goroutine; the second call returns net.ErrClosed.
func (c *conn) Close() error {
	c.of.mu.Lock()
	if c.closed {
		c.of.mu.Unlock()
		return net.ErrClosed
	}
	c.drop()
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// drop forgets the connection, which the caller closes. The listener's mu is held.
func (c *conn) drop() {
	c.closed = true
	c.rest()
	delete(c.of.conns, c)
}

// rest forgets the bytes that the connection has sent. The listener's mu is held.
func (c *conn) rest() {
	c.of.headers -= c.header
	c.header = 0
}

// Read reads. Bytes that a connection sends before its request is let in count as header.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.countBytes(n) {
		c.Close()
		return 0, errHeaders
	}
	return n, err
}

// countBytes takes bytes that came before a request was let in. It reports false if they are too many for all together.
func (c *conn) countBytes(n int) bool {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.let {
		return true
	}
	if c.closed || c.of.headers+n > c.of.bounds.Headers {
		return false
	}
	c.header += n
	c.of.headers += n
	return true
}

// letIn says that the access has let the present request in.
func (c *conn) letIn() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.known, c.let, c.since = true, true, time.Now()
	c.rest()
}

// beginRequest says that the present request is worked on from now: the connection is not closed for another one. It reports
// false if that has happened, and then nothing may be done for the request.
func (c *conn) beginRequest() bool {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.busy = !c.closed
	return c.busy
}

// state hears from the HTTP server that the connection waits for its next request.
func (l *listener) state(c net.Conn, s http.ConnState) {
	k, ok := c.(*conn)
	if !ok || s != http.StateIdle {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if k.let { // else no request was let in, and the connection is no younger for it
		k.let, k.busy, k.since = false, false, time.Now()
	}
	k.rest()
}

// connKey is the key of the connection in a request's context.
type connKey struct{}

// connContext gives the requests of a connection the connection.
func connContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// connOf is the connection of a request, nil in tests that have none.
func connOf(r *http.Request) *conn {
	c, _ := r.Context().Value(connKey{}).(*conn)
	return c
}
