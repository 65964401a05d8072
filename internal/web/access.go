package web

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"
)

// Access says who may ask, and how often. Health checks need no key.
type Access struct {
	// Keys are what a request must carry one of; nil is none.
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

// Wrap puts the access before a handler. The zero Access lets nobody in.
func (a Access) Wrap(next http.Handler) http.Handler {
	limits := map[int]*rate.Limiter{}
	for i := range maxKeys + 1 {
		limits[i] = rate.NewLimiter(a.limit(), a.Burst)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := 0
		if r.URL.Path != Health {
			if p := a.refuse(r, &key); p != nil {
				if p.Status == http.StatusUnauthorized {
					w.Header().Set("WWW-Authenticate", `Bearer realm="weir"`)
				}
				p.Write(w)
				return
			}
		}
		r = r.WithContext(context.WithValue(r.Context(), limiterKey{}, limits[key]))
		next.ServeHTTP(w, r)
	})
}

func (a Access) limit() rate.Limit {
	if a.Rate == 0 {
		return rate.Inf
	}
	return rate.Limit(a.Rate)
}

// refuse says why a request may not come in, nil when it may, and whose it is.
func (a Access) refuse(r *http.Request, key *int) *Problem {
	switch {
	case a.Keys != nil:
		scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return ProblemOf(http.StatusUnauthorized, "key", "a key is needed: Authorization: Bearer KEY")
		}
		var ok bool
		if *key, ok = a.Keys.find(strings.TrimSpace(given)); !ok {
			return ProblemOf(http.StatusUnauthorized, "key", "this key is none of those that are good here")
		}
	case a.Open:
	case !a.Local:
		return ProblemOf(http.StatusUnauthorized, "key", "no keys are set here, so nobody has one")
	case !isLocal(r.Host):
		return ProblemOf(http.StatusMisdirectedRequest, "host", fmt.Sprintf("%.100q is not a name of this server; it is asked as localhost or by a loopback address", r.Host))
	}
	return nil
}

func isLocal(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = strings.Trim(hostport, "[]")
	}
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

type limiterKey struct{}

// Spend takes n commands from what the asker may have now. When it is too much it
// answers so, and reports false.
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
	detail := "too many commands in a short time"
	if !res.OK() {
		wait, detail = time.Second, fmt.Sprintf("%d commands are more than are taken at once; %d are possible", n, limiter.Burst())
	}
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
	ProblemOf(http.StatusTooManyRequests, "rate", detail).Write(w)
	return false
}

// Flags are those of a command that serves, about who may ask.
type Flags struct {
	KeysFile string `name:"keys-file" placeholder:"FILE" help:"Up to two keys, one a line, of which requests carry one (Authorization: Bearer KEY); read again when the file changes. Or give them in WEIR_KEYS, with a comma between."`
	Open     bool   `help:"Serve without keys on an address that others reach."`
}

// Limits are the flags of a command that takes writes, about how often.
type Limits struct {
	Rate float64 `default:"1000" placeholder:"N" help:"Writes a second that each key, or everybody without one, may have; 0 is any number (default ${default})."`
}

// EnvKeys is the environment variable that keys may be in.
const EnvKeys = "WEIR_KEYS"

// Burst is how many commands may come at once, whatever the rate is.
const Burst = 1000

// Serve listens on an address for a handler, behind the access that they ask
// for. An address that others reach needs keys, or --open.
func (f Flags) Serve(addr string, l Limits, h http.Handler, log *slog.Logger) (*Server, error) {
	keys, err := OpenKeys(f.KeysFile, os.Getenv(EnvKeys), log)
	if err != nil {
		return nil, err
	}
	if l.Rate < 0 || l.Rate != l.Rate {
		return nil, fmt.Errorf("--rate %v is less than none", l.Rate)
	}
	s, err := Listen(addr, nil, log)
	if err != nil {
		return nil, fmt.Errorf("%w; say where to serve with --addr HOST:PORT", err)
	}
	ip := s.listener.Addr().(*net.TCPAddr).IP
	a := Access{Keys: keys, Open: f.Open, Local: ip.IsLoopback(), Rate: l.Rate, Burst: max(Burst, int(math.Ceil(l.Rate)))}
	if keys == nil && !a.Open && !a.Local {
		s.listener.Close()
		return nil, fmt.Errorf("others reach %s: set up to two keys in WEIR_KEYS or with --keys-file FILE, or say --open", addr)
	}
	s.http.Handler = a.Wrap(h)
	return s, nil
}
