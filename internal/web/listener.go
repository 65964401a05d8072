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
	defaultBodies      = 16 << 20
	defaultHeaders     = 4 << 20
	defaultWait        = 2 * time.Second

	// ownHeader is how many bytes of headers a connection may send before they count
	// against what all have.
	ownHeader = 8 << 10
	// spare connections are taken beyond Connections, so that health checks are
	// answered, and others refused, when all are at work.
	spare = 8
	// grace is how long a connection has to show what it wants before it gives way. While
	// all are younger the next one waits, so that many who come at once are all served.
	grace = 100 * time.Millisecond
)

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

// listener bounds the connections that are open. When there are too many, one that
// nobody's request is being worked on gives way to the next: first one that has not
// shown a key, from the address that has most of those, and the oldest. A connection
// whose request was let in is never closed for another.
type listener struct {
	net.Listener
	bounds Bounds
	log    *slog.Logger

	end     sync.Once
	mu      sync.Mutex
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

	since  time.Time // of its last request, or of its beginning
	known  bool      // its last request was let in
	busy   bool      // a request that was let in is being worked on
	header int       // bytes that it has sent since it was last busy
	closed bool
}

var errHeaders = errors.New("too many bytes of headers are being read")

func bound(l net.Listener, b Bounds, log *slog.Logger) *listener {
	return &listener{Listener: l, bounds: b.withDefaults(), log: log, conns: map[*conn]struct{}{}}
}

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

// admit takes a connection, in place of another where there are too many. It is nil
// when all are at work, the spare ones too.
func (l *listener) admit(c net.Conn) *conn {
	k := &conn{Conn: c, of: l, from: origin(c.RemoteAddr())}
	for {
		l.mu.Lock()
		now := time.Now()
		gives, state := l.room(k, now.Add(-grace))
		if state == wait {
			l.mu.Unlock()
			time.Sleep(grace / 20)
			continue
		}
		if state == full {
			l.mu.Unlock()
			return nil
		}
		k.since = now
		l.conns[k] = struct{}{}
		say := (gives != nil || k.spare) && now.Sub(l.said) > time.Minute
		if say {
			l.said = now
		}
		l.mu.Unlock()
		if gives != nil {
			gives.Close()
		}
		if say {
			l.log.Warn("there are as many connections as are taken, and those that ask nothing give way",
				"connections", l.bounds.Connections, "perAddress", l.bounds.of(k.from), "from", k.from.Addr())
		}
		return k
	}
}

// Close takes no more connections, and ends those that nothing is worked on for: a
// client that says nothing does not hold up a server that stops.
func (l *listener) Close() (err error) {
	l.end.Do(func() { err = l.Listener.Close() })
	l.mu.Lock()
	var idle []*conn
	for c := range l.conns {
		if !c.busy {
			idle = append(idle, c)
		}
	}
	l.mu.Unlock()
	for _, c := range idle {
		c.Close()
	}
	return err
}

// What there is for a connection that comes.
const (
	taken = iota
	wait  // until one of those that are there has had its time, or ends
	full
)

// room says whether a connection can be taken, and for which one, of those that were
// there before a time. It is a spare one when all others are at work.
func (l *listener) room(k *conn, before time.Time) (gives *conn, state int) {
	var all, mine, spares int
	for o := range l.conns {
		if o.spare {
			spares++
			continue
		}
		if all++; o.from == k.from {
			mine++
		}
	}
	k.spare = false
	some := false
	switch {
	case mine >= l.bounds.of(k.from):
		gives, some = l.victim(before, func(o *conn) bool { return !o.spare && o.from == k.from })
	case all >= l.bounds.Connections:
		gives, some = l.victim(before, func(o *conn) bool { return !o.spare })
	default:
		return nil, taken
	}
	if k.spare = gives == nil && !some; k.spare && spares >= spare {
		gives, some = l.victim(before, func(o *conn) bool { return o.spare })
		if gives == nil && !some {
			return nil, full
		}
	}
	if gives == nil && some {
		return nil, wait
	}
	return gives, taken
}

// victim is which of some connections gives way, of those that were there before a
// time; none when all are at work. some says that there is one to wait for: one that
// has shown a key does not give way while there are strangers, however young.
func (l *listener) victim(before time.Time, of func(*conn) bool) (gives *conn, some bool) {
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
	some = len(idle) > 0
	idle = slices.DeleteFunc(idle, func(o *conn) bool {
		return o.known && len(strangers) > 0 || !o.since.Before(before)
	})
	if len(idle) == 0 {
		return nil, some
	}
	return slices.MinFunc(idle, func(a, b *conn) int {
		return cmp.Or(cmp.Compare(strangers[b.from], strangers[a.from]), a.since.Compare(b.since))
	}), true
}

// origin is whom a connection is counted for: an address, of IPv6 the network that one
// customer has.
func origin(a net.Addr) netip.Prefix {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := t.AddrPort().Addr().Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() {
		bits = 64
	}
	p, _ := ip.Prefix(bits)
	return p
}

func (c *conn) Close() error {
	c.of.mu.Lock()
	if c.closed {
		c.of.mu.Unlock()
		return net.ErrClosed
	}
	c.closed = true
	c.rest()
	delete(c.of.conns, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
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

// begin says that a request of the connection was let in. It is false when the
// connection has given way before; nothing was done for the request then.
func (c *conn) begin() bool {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if c.closed {
		return false
	}
	c.known, c.busy, c.since = true, true, time.Now()
	c.rest()
	return true
}

// state hears from the HTTP server that the connection waits for its next request.
func (l *listener) state(c net.Conn, s http.ConnState) {
	k, ok := c.(*conn)
	if !ok || s != http.StateIdle {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	k.busy, k.since = false, time.Now()
	k.rest()
}

type connKey struct{}

// connContext gives the requests of a connection the connection.
func connContext(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

func connOf(r *http.Request) *conn {
	c, _ := r.Context().Value(connKey{}).(*conn)
	return c
}
