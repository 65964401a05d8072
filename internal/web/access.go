package web

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"

	"weir/internal/memory"
)

// Access says who may ask, and how often. Health checks need no key.
// The zero Access lets nothing in but health checks.
type Access struct {
	// Keys are those of which a request must carry one; nil is none.
	Keys *Keys
	// Open lets everybody in who reaches the address, where there are no keys.
	Open bool
	// Local is for an address that only this machine reaches, with no keys: requests
	// must name it as such, so that no page in a browser gets here under a name of its
	// own that leads to this address.
	Local bool
	// Rate is how many commands a second each key, or everybody without one, may
	// have; 0 is any number. Burst is how many at once.
	Rate  float64
	Burst int
}

// Health is the path that needs no key.
const Health = "/healthz"

// Wrap puts the access before a handler. The zero Access refuses every request.
// Each key has a rate of its own, and so have all callers without a key together. /healthz needs no
// key, and says nothing but whether the store answers.
func (a Access) Wrap(next http.Handler) http.Handler {
	limits := map[int]*rate.Limiter{}
	for i := range maxKeys + 1 {
		limits[i] = rate.NewLimiter(a.limit(), a.Burst)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := 0
		if r.URL.Path != Health {
			if p := a.refuseRequest(r, &key); p != nil {
				if p.Status == http.StatusUnauthorized {
					w.Header().Set("WWW-Authenticate", challengeOf(r))
				}
				p.refuseUnread(w, r)
				return
			}
			if err := sameOrigin.Check(r); err != nil && !IsConsole(r.URL.Path) { // the console says it in words of its own
				ProblemOf(http.StatusForbidden, "origin", "a page of another origin may not write here").refuseUnread(w, r)
				return
			}
		}
		ctx := context.WithValue(r.Context(), limiterKey{}, limits[key])
		next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, askerKey{}, key)))
	})
}

// sameOrigin refuses a browser's request for a page of another origin, but for reads. Programs send no Origin.
var sameOrigin = http.NewCrossOriginProtection()

// limit is the rate in the limiter's form, where 0 would be none at all.
func (a Access) limit() rate.Limit {
	if a.Rate == 0 {
		return rate.Inf
	}
	return rate.Limit(a.Rate)
}

// refuseRequest says why a request may not come in, nil when it may, and whose it is.
// The console's password is a key too; everywhere else a key comes as a bearer token (RFC 6750).
// The Host header is compared on loopback, so that no web page can reach it under a name of its
// own.
func (a Access) refuseRequest(r *http.Request, key *int) *Problem {
	switch {
	case a.Keys != nil:
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if _, password, is := r.BasicAuth(); is && IsConsole(r.URL.Path) {
			scheme, given = "Bearer", password
		}
		if !strings.EqualFold(scheme, "Bearer") {
			return ProblemOf(http.StatusUnauthorized, "key", "a key is needed: Authorization: Bearer KEY")
		}
		var roles []string
		if *key, roles = a.Keys.find(strings.TrimSpace(given)); *key == 0 {
			return ProblemOf(http.StatusUnauthorized, "key", "this key is none of those that are good here")
		}
		if needs := roleOf(r); len(roles) > 0 && !slices.Contains(roles, needs) {
			return ProblemOf(http.StatusForbidden, "role", "this key lacks the role "+needs)
		}
	case a.Open && r.Context().Value(balancedKey{}) != nil:
		return ProblemOf(http.StatusUnauthorized, "key", "WEIR_OPEN is for IAM and authorizers, and a load balancer asks neither: set WEIR_KEYS")
	case a.Open:
	case !a.Local:
		return ProblemOf(http.StatusUnauthorized, "key", "no keys are set here, so no key is valid")
	case !isLocal(r.Host):
		return ProblemOf(http.StatusMisdirectedRequest, "host", fmt.Sprintf("%.100q is not a name of this server; it is asked as localhost or by a loopback address", r.Host))
	}
	return nil
}

// challengeOf says how a key is given. A browser asks its user for a password, so on the console's
// pages, and only there, a key may also be a password. The name of the user does not matter.
func challengeOf(r *http.Request) string {
	if IsConsole(r.URL.Path) {
		return `Basic realm="weir: a key as the password", charset="UTF-8"`
	}
	return `Bearer realm="weir"`
}

// isLocal reports whether a Host header names this machine, with or without a port.
func isLocal(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// limiterKey and askerKey are the keys of values in a request's context.
type limiterKey struct{}

type askerKey struct{}

// balancedKey is that of a request which a load balancer handed to a function.
type balancedKey struct{}

// Asker is whom a request is counted for: a key, or without keys an address. Askers can
// be compared.
type Asker struct {
	key  int
	from netip.Prefix
}

// AskerOf is the asker of a request.
// Requests that Access did not wrap have the asker of their address.
func AskerOf(r *http.Request) Asker {
	if key, _ := r.Context().Value(askerKey{}).(int); key > 0 {
		return Asker{key: key}
	}
	a, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return Asker{}
	}
	return Asker{from: origin(net.TCPAddrFromAddrPort(a))}
}

// Spend takes n commands from the asker's share now. When it is too much it
// answers so, and reports false.
// A request that Access did not wrap may have any number. The caller returns at once after false.
func Spend(w http.ResponseWriter, r *http.Request, n int) bool {
	limiter, ok := r.Context().Value(limiterKey{}).(*rate.Limiter)
	if !ok || n <= 0 {
		return true
	}
	now := time.Now()
	res := limiter.ReserveN(now, n)
	wait := res.DelayFrom(now)
	if res.OK() && wait <= 0 {
		return true
	}
	res.CancelAt(now)
	detail := "too much in a short time"
	if !res.OK() {
		wait, detail = time.Second, fmt.Sprintf("%d commands are more than are taken at once; %d are possible", n, limiter.Burst())
	}
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	ProblemOf(http.StatusTooManyRequests, "rate", detail).Write(w)
	return false
}

// Flags are those of a command that serves, about who may ask and how much at once.
type Flags struct {
	KeysFile    string `name:"keys-file" placeholder:"FILE" help:"Keys, one a line, of which requests carry one (Authorization: Bearer KEY), with their roles behind them if they are not for all: KEY read write console metrics. Read again when the file changes. Or give them in WEIR_KEYS, with a comma between."`
	Open        bool   `help:"Serve without keys on an address that others reach."`
	Connections int    `default:"1024" placeholder:"N" help:"Connections that are open at once, half of them from one address other than this machine (default ${default}, and fewer where the system allows the process too few open files)."`
	Requests    int    `default:"128" placeholder:"N" help:"Requests that are worked on at once, fewer than half of the connections; others wait up to 2 s and are then refused (default ${default})."`
}

// Limits are the flags of a command that takes writes, about how often.
type Limits struct {
	Rate float64 `default:"1000" placeholder:"N" help:"Writes and queries a second that each key, or everybody without one, may have; 0 is any number (default ${default})."`
}

// EnvKeys is the environment variable that keys may be in.
const EnvKeys = "WEIR_KEYS"

// Burst is how many commands may come at once, whatever the rate is.
const Burst = 1000

// calls is how many connections to services a request may need at once, of a store or
// an index that is one.
const calls = 2

// Serve listens on an address for a handler, behind the access that they ask for. An
// address that others reach needs keys, or --open. need is the files that stay open
// beside the connections: connections get the rest. size is the memory of the process, of which bodies get their share.
// The server listens when Serve returns, and answers from Run on. The caller closes it. Errors are mistakes in the
// flags, or an address that cannot be had.
func (f Flags) Serve(addr string, l Limits, need memory.Need, size memory.Size, h http.Handler, log *slog.Logger) (*Server, error) {
	keys, err := OpenKeys(f.KeysFile, os.Getenv(EnvKeys), log)
	if err != nil {
		return nil, err
	}
	if l.Rate < 0 || l.Rate != l.Rate {
		return nil, fmt.Errorf("--rate %v is less than none", l.Rate)
	}
	bounds, err := f.bounds(need, log)
	if err != nil {
		return nil, err
	}
	bounds.Bodies = int(size.Share(defaultBodies))
	s, err := Listen(addr, bounds, nil, log)
	if err != nil {
		return nil, fmt.Errorf("%w; say where to serve with --addr HOST:PORT", err)
	}
	ip := s.listener.Addr().(*net.TCPAddr).IP
	a := Access{Keys: keys, Open: f.Open, Local: ip.IsLoopback(), Rate: l.Rate, Burst: max(Burst, int(math.Ceil(l.Rate)))}
	if keys == nil && !a.Open && !a.Local {
		s.listener.Close()
		return nil, fmt.Errorf("others reach %s: set keys in WEIR_KEYS or with --keys-file FILE, or say --open", addr)
	}
	s.handle(a, h)
	return s, nil
}

// bounds are those of the flags, with no more connections than there are files for.
// The files that the store and calls need come first, and connections get the rest. Too few for any
// is an error that says which limit would do.
func (f Flags) bounds(need memory.Need, log *slog.Logger) (Bounds, error) {
	if f.Connections < 0 || f.Requests < 0 {
		return Bounds{}, fmt.Errorf("--connections %d and --requests %d: less than none is not possible", f.Connections, f.Requests)
	}
	b := Bounds{Connections: f.Connections, Requests: f.Requests}.withDefaults()
	if need.Calls > 0 {
		need.Calls += calls * b.Requests
	}
	left, err := memory.Left(need)
	if err != nil {
		return Bounds{}, err
	}
	if left < b.Connections {
		log.Warn("fewer connections are taken than asked for, since the process may have too few open files; raise ulimit -n", "connections", left, "asked", b.Connections)
		b = Bounds{Connections: left, Requests: b.Requests}.withDefaults()
	}
	return b, nil
}

// Console is the path below which the console is; its first page is at the root.
const Console = "/console/"

// IsConsole reports whether a path is one of the console's pages.
func IsConsole(path string) bool { return path == "/" || strings.HasPrefix(path, Console) }
