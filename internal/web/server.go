package web

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Server serves a handler on an address. Make one with Listen.
type Server struct {
	listener *listener
	http     *http.Server
	load     *load
	stopping chan struct{} // closed when the server begins to stop
}

// stoppingKey is the key of a server's stopping in the context of its requests.
type stoppingKey struct{}

// Stopping returns a channel that is closed when the server of a request begins to stop. An answer
// without an end, such as a stream of events, ends then. The channel is nil for a request that no
// Server received.
func Stopping(r *http.Request) <-chan struct{} {
	c, _ := r.Context().Value(stoppingKey{}).(chan struct{})
	return c
}

// The time that a slow or silent client may take, and how long requests in progress have
// when the server stops.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 15 * time.Second
	writeTimeout  = 2 * time.Minute
	idleTimeout   = 2 * time.Minute
	drainTimeout  = 10 * time.Second
	maxHeader     = 2 * MaxQuery // above MaxQuery, so that a long query string is told so
)

// Listen takes the address, HOST:PORT; port 0 is any free one. Requests wait until
// Run. Everybody who reaches the address is let in, within the bounds. A nil log is
// slog.Default().
func Listen(addr string, b Bounds, h http.Handler, log *slog.Logger) (*Server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	if log == nil {
		log = slog.Default()
	}
	s := &Server{listener: boundListener(l, b, log), stopping: make(chan struct{})}
	s.http = &http.Server{
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		// OPTIONS * goes through the access as every request.
		DisableGeneralOptionsHandler: true,
		ErrorLog:                     slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		ConnState:                    s.listener.state,
		ConnContext:                  connContext,
		BaseContext: func(net.Listener) context.Context {
			return context.WithValue(context.Background(), stoppingKey{}, s.stopping)
		},
	}
	s.handle(Access{Open: true}, h)
	return s, nil
}

// handle has the handler answer those whom the access lets in, within the bounds.
func (s *Server) handle(a Access, h http.Handler) {
	s.load = newLoad(s.listener.bounds)
	s.http.Handler = a.Wrap(s.load.wrap(h))
}

// Addr is the address that the server listens on.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Close ends a server that was not run. One that runs is ended by the context of Run.
func (s *Server) Close() error { return s.listener.Close() }

// Run serves until ctx is done, then lets requests in progress end, as http.Server.Shutdown does. It returns nil
// when all have; those that take too long are cut off. The server is closed then.
func (s *Server) Run(ctx context.Context) error {
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(s.listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve on %s: %w", s.Addr(), err)
	case <-ctx.Done():
	}
	close(s.stopping)
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainTimeout)
	defer cancel()
	err := s.http.Shutdown(drain)
	if err != nil {
		err = errors.Join(fmt.Errorf("requests were cut off: %w", err), s.http.Close())
	}
	<-served
	return err
}
