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

// Bounds are what a server holds at once, whatever its clients do. A field that is 0
// has its default.
type Bounds struct {
	Connections int           // that are open
	PerAddress  int           // of them, from one address; half of them, and all from this machine
	Requests    int           // that are worked on
	Bodies      int           // bytes of the bodies of those
	Headers     int           // bytes of headers that are being read, beyond what each connection has
	Wait        time.Duration // how long a request waits for others to end
}

// What a server holds where nothing else is said.
const (
	defaultConnections = 1024
	defaultRequests    = 128
	defaultBodies      = 8 << 20 // what is read from a body, and the answer, take several times its bytes
	defaultHeaders     = 4 << 20
	defaultWait        = 2 * time.Second

	// ownHeader is how many bytes of headers a connection may send before they count
	// against what all have.
	ownHeader = 8 << 10
	// spare connections are taken beyond Connections, so that health checks are
	// answered, and others refused, when all are at work.
	spare = 8
	// grace is how long a connection may be without a key before it gives way to others
	// that have none.
	grace = 100 * time.Millisecond
	// linger is how long a server that stops waits for a request that has begun to arrive.
	linger = time.Second
)

// withDefaults replaces the fields that are 0.
func (b Bounds) withDefaults() Bounds {
	b.Connections = cmp.Or(b.Connections, defaultConnections)
	b.Requests = cmp.Or(b.Requests, defaultRequests)
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

// listener bounds the connections that are open. It never waits for one to end: when
// there are too many, a stranger, which has shown no key, gives way once it has had its
// time: from the address that has most strangers, the oldest. Where none has, the next
// connection is a spare one, and is taken among the others when it shows its key. A
// connection whose request was let in is never closed for another.
type listener struct {
	net.Listener
	bounds Bounds
	log    *slog.Logger

	linger time.Duration // how long a request that is arriving holds up Close
	end    sync.Once

	mu      sync.Mutex
	stopped bool
	conns   map[*conn]struct{}
	headers int       // bytes beyond ownHeader that connections have sent
	said    time.Time // when it was last logged that connections give way
}

// conn is a connection. Its fields are guarded by its listener's mu.
type conn struct {
	net.Conn
	of    *listener
	from  netip.Prefix
	spare bool

	since  time.Time // of its last request that was let in, or of its beginning
	known  bool      // a request of it was let in
	busy   bool      // a request that was let in is being worked on
	header int       // bytes that it has sent since it was last busy
	closed bool
}

var (
	// Why a connection was closed by the server, and not by its client.
	errHeaders = errors.New("too many bytes of headers are being read")
	errGone    = errors.New("the connection has given way to another")
	errFull    = errors.New("all connections are being worked for")
)

// bound puts bounds around a listener, which it then owns.
func bound(l net.Listener, b Bounds, log *slog.Logger) *listener {
	return &listener{Listener: l, bounds: b.withDefaults(), log: log, linger: linger, conns: map[*conn]struct{}{}}
}

// Accept returns connections in the order in which they come. It never waits for one to end.
func (l *listener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if k := l.admit(c); k != nil {
			return k, nil
		}
		c.Close()
	}
}

// admit takes a connection, at once: in place of another, or as a spare one, where there
// are too many. It is nil when the listener was closed.
func (l *listener) admit(c net.Conn) *conn {
	now := time.Now()
	k := &conn{Conn: c, of: l, from: origin(c.RemoteAddr()), since: now}
	l.mu.Lock()
	if l.stopped {
		l.mu.Unlock()
		return nil
	}
	gives := l.room(k, now.Add(-grace))
	if gives != nil {
		gives.drop()
	}
	l.conns[k] = struct{}{}
	say := (gives != nil || k.spare) && now.Sub(l.said) > time.Minute
	if say {
		l.said = now
	}
	l.mu.Unlock()
	if gives != nil {
		gives.Conn.Close()
	}
	if say {
		l.log.Warn("there are as many connections as are taken, and those that ask nothing give way",
			"connections", l.bounds.Connections, "perAddress", l.bounds.of(k.from), "from", k.from.Addr())
	}
	return k
}

// Close takes no more connections, and ends those that nothing is worked on for: a
// client that says nothing does not hold up a server that stops. A request that has begun
// to arrive has until linger is over to be let in.
func (l *listener) Close() (err error) {
	l.end.Do(func() {
		l.mu.Lock()
		l.stopped = true
		l.mu.Unlock()
		err = l.Listener.Close()
		for began := time.Now(); l.endIdle(time.Since(began) >= l.linger); {
			time.Sleep(5 * time.Millisecond)
		}
	})
	return err
}

// endIdle ends the connections that nothing is worked on for. Those that have begun to
// send a request are left, and reported, unless all are to end.
func (l *listener) endIdle(all bool) (left bool) {
	var idle []*conn
	l.mu.Lock()
	for c := range l.conns {
		switch {
		case c.busy:
		case c.header > 0 && !all:
			left = true
		default:
			c.drop()
			idle = append(idle, c)
		}
	}
	l.mu.Unlock()
	for _, c := range idle {
		c.Conn.Close()
	}
	return left
}

// room finds which connection gives way to one that comes, nil when there is place for
// all. One that nothing gives way to becomes a spare one, in place of another spare one
// where there are too many of those. The listener's mu is held.
func (l *listener) room(k *conn, before time.Time) (gives *conn) {
	group := l.crowd(k)
	if group == nil {
		return nil
	}
	gives = l.victim(func(o *conn) bool { return group(o) && !o.known && o.since.Before(before) })
	if gives != nil {
		return gives
	}
	k.spare = true
	spares := 0
	for o := range l.conns {
		if o.spare {
			spares++
		}
	}
	if spares < spare {
		return nil
	}
	return l.victim(func(o *conn) bool { return o.spare })
}

// crowd says which connections there are too many of for one more to be taken beside
// them: those of its address, or all. It is nil where there is place.
func (l *listener) crowd(k *conn) func(*conn) bool {
	var all, mine int
	for o := range l.conns {
		if o.spare {
			continue
		}
		if all++; o.from == k.from {
			mine++
		}
	}
	switch {
	case mine >= l.bounds.of(k.from):
		return func(o *conn) bool { return !o.spare && o.from == k.from }
	case all >= l.bounds.Connections:
		return func(o *conn) bool { return !o.spare }
	}
	return nil
}

// victim is which of some connections gives way, nil when all of them are at work:
// strangers first, from the address that has most of those, then the oldest.
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

// Read reads. What a connection sends before its request is let in counts as header.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 && !c.counts(n) {
		c.Close()
		return 0, errHeaders
	}
	return n, err
}

// counts takes bytes that came before a request was let in. It reports false if they are too many for all together.
// A connection whose request was let in counts no more. Up to ownHeader bytes are its own; what is
// above is taken from what all share.
func (c *conn) counts(n int) bool {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.busy {
		return true
	}
	more := max(c.header+n-ownHeader, 0) - max(c.header-ownHeader, 0)
	if c.closed || c.of.headers+more > c.of.bounds.Headers {
		return false
	}
	c.header += n
	c.of.headers += more
	return true
}

// rest forgets what the connection has sent. The listener's mu is held.
func (c *conn) rest() {
	c.of.headers -= max(c.header-ownHeader, 0)
	c.header = 0
}

// begin says that a request of the connection was let in. A spare connection is then
// taken among the others, and one that nothing is worked on for gives way to it, however
// young: a stranger where there is one. After errGone nothing may be done for the request;
// after errFull it is to be refused.
func (c *conn) begin() error {
	l := c.of
	l.mu.Lock()
	var gives *conn
	err := error(nil)
	switch {
	case c.closed:
		err = errGone
	case c.spare:
		if group := l.crowd(c); group != nil {
			if gives = l.victim(group); gives == nil {
				err = errFull
			} else {
				gives.drop()
			}
		}
	}
	if err == nil {
		c.spare, c.known, c.busy, c.since = false, true, true, time.Now()
		c.rest()
	}
	l.mu.Unlock()
	if gives != nil {
		gives.Conn.Close()
	}
	return err
}

// isSpare says whether the connection is one of those beyond all that are taken.
func (c *conn) isSpare() bool {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	return c.spare
}

// state hears from the HTTP server that the connection waits for its next request.
func (l *listener) state(c net.Conn, s http.ConnState) {
	k, ok := c.(*conn)
	if !ok || s != http.StateIdle {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if k.busy { // else no request was let in, and the connection is no younger for it
		k.busy, k.since = false, time.Now()
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
