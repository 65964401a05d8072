package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// Keys are the secrets of which a request must carry one. There may be two of the same roles, so that
// one can be replaced while the other is good. While requests come, a file of keys is
// read again once a second. While it cannot be used, the last keys that were read stay
// good for a minute, so that an edit can finish; after that every request is refused
// until the file can be used. So a key that an edit removed is good for no longer than
// that minute.
// Keys may be used by many goroutines. Only their hashes are kept.
type Keys struct {
	file  string
	fixed bool // the file can be read once only
	log   *slog.Logger

	mu     sync.Mutex
	keys   []key
	looked time.Time
	good   time.Time // when the file was last as keys must be
	said   string    // the last thing that was logged about the file
}

// key is the kept form of a key.
type key struct {
	sum   [sha256.Size]byte
	roles []string // sorted; nil is all
}

// Roles are the purposes of a key, as they stand behind it.
var Roles = []string{"console", "metrics", "read", "write"}

// roleOf is the role that a request needs.
func roleOf(r *http.Request) string {
	switch {
	case IsConsole(r.URL.Path):
		return "console"
	case r.URL.Path == "/metrics":
		return "metrics"
	case r.Method == http.MethodGet || r.Method == http.MethodHead:
		return "read"
	}
	return "write"
}

const (
	// How many keys there may be, and of the same roles, how short, how large their file; how often it is read, and how long old
	// keys stay good.
	maxKeys    = 8
	maxAlike   = 2
	minKey     = 16 // characters
	maxKeyFile = 64 << 10
	lookEach   = time.Second
	staleAfter = time.Minute
)

// OpenKeys takes keys from a file, one a line, or else from the content of an
// environment variable, with a comma between. It is nil when there are none.
func OpenKeys(file, environ string, log *slog.Logger) (*Keys, error) {
	k := &Keys{file: file, log: log}
	switch {
	case file != "" && environ != "":
		return nil, fmt.Errorf("keys are given twice, in WEIR_KEYS and in %s; give one", file)
	case file != "":
		return k, k.read()
	case environ != "":
		var err error
		if k.keys, err = parseKeys(strings.Split(environ, ",")); err != nil {
			return nil, fmt.Errorf(EnvKeys+": %w", err)
		}
		return k, nil
	}
	return nil, nil
}

// parseKeys reads keys, each with its roles behind it: KEY read metrics. Its errors do not hold them.
// Keys are kept as their SHA-256 only.
func parseKeys(lines []string) (keys []key, err error) {
	alike := map[string]int{}
	for _, line := range lines {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\t' && r != '\r' || r > '~' }) {
			return nil, fmt.Errorf("key %d has characters other than visible ASCII", len(keys)+1)
		}
		if len(words[0]) < minKey {
			return nil, fmt.Errorf("key %d has %d characters; %d are the fewest, as openssl rand -hex 32 makes them", len(keys)+1, len(words[0]), minKey)
		}
		roles := slices.Sorted(slices.Values(words[1:]))
		if slices.ContainsFunc(roles, func(r string) bool { return !slices.Contains(Roles, r) }) {
			return nil, fmt.Errorf("what stands behind key %d are not all roles, which are %s", len(keys)+1, strings.Join(Roles, ", "))
		}
		sum := sha256.Sum256([]byte(words[0]))
		if before := slices.IndexFunc(keys, func(k key) bool { return k.sum == sum && !slices.Equal(k.roles, roles) }); before >= 0 {
			return nil, fmt.Errorf("key %d is key %d with other roles; give all its roles in one place", len(keys)+1, before+1)
		}
		alike[strings.Join(roles, " ")]++
		keys = append(keys, key{sum, roles})
	}
	for _, n := range alike {
		if n > maxAlike {
			return nil, fmt.Errorf("there are %d keys with the same roles; one or two are possible", n)
		}
	}
	if len(keys) == 0 || len(keys) > maxKeys {
		return nil, fmt.Errorf("there are %d keys; 1 to %d are possible", len(keys), maxKeys)
	}
	return keys, nil
}

// read reads the file. Its content is compared by no date: two keys may be of one
// length, and a file may keep its date.
func (k *Keys) read() error {
	k.looked = time.Now()
	f, err := os.Open(k.file)
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxKeyFile))
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	keys, err := parseKeys(strings.Split(string(b), "\n"))
	if err != nil {
		return fmt.Errorf("%s: %w", k.file, err)
	}
	info, err := f.Stat()
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	k.keys, k.good, k.fixed = keys, k.looked, !info.Mode().IsRegular()
	return nil
}

// current are the keys as they are now: none while it is not known which are good.
// The file is looked at once in lookEach at most, and keys stay good for staleAfter while it cannot
// be read.
func (k *Keys) current() []key {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file == "" || k.fixed || time.Since(k.looked) < lookEach {
		return k.keys
	}
	switch err := k.read(); {
	case err == nil && k.said != "":
		k.said = ""
		k.log.Info("the keys can be read again", "file", k.file)
	case err == nil:
	case time.Since(k.good) >= staleAfter:
		k.keys = nil
		k.logFault("the keys cannot be read, and the last ones have expired: all requests are refused until the keys can be read", err)
	default:
		k.logFault("the keys cannot be read again; those before stay good for a minute", err)
	}
	return k.keys
}

// logFault logs a fault of the file once, until it is another one. mu is held.
func (k *Keys) logFault(what string, err error) {
	if text := what + err.Error(); k.said != text {
		k.said = text
		k.log.Error(what, "error", err)
	}
}

// find tells which key it is, from 1, and its roles, in a time that says nothing about the keys. It is 0 if there is no such key.
func (k *Keys) find(given string) (which int, roles []string) {
	sum, all := sha256.Sum256([]byte(given)), k.current()
	for i := range all {
		which = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], all[i].sum[:]), i+1, which)
	}
	if which > 0 {
		roles = all[which-1].roles
	}
	return which, roles
}
