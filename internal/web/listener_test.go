package web

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"
)

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
	k := l.admit(&still{from: &net.TCPAddr{IP: net.ParseIP(from), Port: 1}})
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
	return bound(nil, Bounds{Connections: 3, PerAddress: 2}, slog.New(slog.DiscardHandler))
}

// TestNobodyWaitsToBeTaken: a connection is taken at once, whatever the others do:
// in place of a stranger that has had its time, or else as a spare one. The spare ones
// of one address give way to others, and not the other way round.
func TestNobodyWaitsToBeTaken(t *testing.T) {
	l := fullListener()
	a, b := come(t, l, "10.0.0.1"), come(t, l, "10.0.0.1")
	third := come(t, l, "10.0.0.1")
	if !third.spare || ended(a) || ended(b) {
		t.Error("one that has only come gives way")
	}
	if other := come(t, l, "10.0.0.2"); other.spare {
		t.Error("one address stops another")
	}
	shy := come(t, l, "10.0.0.3") // all are too many now
	for range 20 {
		come(t, l, "10.0.0.1")
	}
	if !shy.spare || ended(shy) || ended(a) || !ended(third) || len(l.conns) != 3+spare {
		t.Errorf("spare %t, ended %t, %t, %t, of %d", shy.spare, ended(shy), ended(a), ended(third), len(l.conns))
	}
	older(a)
	if c := come(t, l, "10.0.0.4"); c.spare || !ended(a) {
		t.Error("one that has had its time does not give way")
	}
}

// TestStrangersGrowOld: requests that are not let in, health checks too, make a
// connection no younger.
func TestStrangersGrowOld(t *testing.T) {
	l := fullListener()
	a, b := come(t, l, "10.0.0.1"), come(t, l, "10.0.0.1")
	older(a)
	l.state(a, http.StateIdle)
	if c := come(t, l, "10.0.0.1"); c.spare || !ended(a) || ended(b) {
		t.Error("a stranger is renewed by what was not let in")
	}
	if err := b.begin(); err != nil {
		t.Fatal(err)
	}
	older(b)
	if l.state(b, http.StateIdle); b.busy || time.Since(b.since) > 30*time.Minute {
		t.Error("the end of a request that was let in does not count")
	}
}

// TestAKeyMakesPlace: a spare connection that shows a key is taken among the others:
// a stranger gives way however young, then one that waits for its next request, and
// none that is worked for. A connection without a key never displaces one with a key.
func TestAKeyMakesPlace(t *testing.T) {
	l := fullListener()
	known, stranger := come(t, l, "10.0.0.1"), come(t, l, "10.0.0.1")
	if err := known.begin(); err != nil {
		t.Fatal(err)
	}
	l.state(known, http.StateIdle)
	older(known)
	first := come(t, l, "10.0.0.1")
	if err := first.begin(); err != nil || first.spare || !ended(stranger) || ended(known) {
		t.Error("a stranger does not give way to a key", err)
	}
	second, silent := come(t, l, "10.0.0.1"), come(t, l, "10.0.0.1")
	if !second.spare || !silent.spare || ended(known) {
		t.Error("a stranger displaces a key")
	}
	if err := second.begin(); err != nil || second.spare || !ended(known) {
		t.Error("one that waits for its next request does not give way to a key", err)
	}
	third := come(t, l, "10.0.0.1")
	if err := third.begin(); err != errFull || third.busy || ended(first) || ended(second) {
		t.Error("where all are worked for:", err)
	}
	if err := known.begin(); err != errGone {
		t.Error("one that has given way:", err)
	}
	l.state(first, http.StateIdle)
	first.Close()
	if err := third.begin(); err != nil || third.spare {
		t.Error("where one has ended:", err)
	}
}

// TestARequestThatDoesNotArrive is given up in the end when the listener closes.
func TestARequestThatDoesNotArrive(t *testing.T) {
	l := fullListener()
	c, busy := come(t, l, "10.0.0.1"), come(t, l, "10.0.0.1")
	if err := busy.begin(); err != nil || !c.counts(1) {
		t.Fatal(err)
	}
	if !l.endIdle(false) || ended(c) {
		t.Error("a request that is arriving has no time")
	}
	if l.endIdle(true) || !ended(c) || ended(busy) {
		t.Error("a request that does not arrive holds up the stop, or one that did is cut off")
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
	until(t, func() bool { all, _, _ := s.held(); return all == 4 })
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
