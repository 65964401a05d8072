package web

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"
)

// Keys are the secrets of which a request must carry one. There may be two, so that
// one can be replaced while the other is good. A file of keys is looked at again when
// it has changed; while what is in it cannot be used, the keys before stay good.
type Keys struct {
	file string
	log  *slog.Logger

	mu     sync.Mutex
	sums   [][sha256.Size]byte
	stamp  string
	looked time.Time
}

const (
	maxKeys  = 2
	minKey   = 16 // characters
	lookEach = time.Second
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
		if k.sums, err = parseKeys(strings.Split(environ, ",")); err != nil {
			return nil, fmt.Errorf(EnvKeys+": %w", err)
		}
		return k, nil
	}
	return nil, nil
}

// parseKeys reads keys. Its errors do not hold them.
func parseKeys(lines []string) (sums [][sha256.Size]byte, err error) {
	for _, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		if strings.ContainsFunc(line, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, fmt.Errorf("key %d has characters other than visible ASCII", len(sums)+1)
		}
		if len(line) < minKey {
			return nil, fmt.Errorf("key %d has %d characters; %d are the fewest, as openssl rand -hex 32 makes them", len(sums)+1, len(line), minKey)
		}
		sums = append(sums, sha256.Sum256([]byte(line)))
	}
	if len(sums) == 0 || len(sums) > maxKeys {
		return nil, fmt.Errorf("there are %d keys; one or two are possible", len(sums))
	}
	return sums, nil
}

func (k *Keys) read() error {
	info, err := os.Stat(k.file)
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	k.looked = time.Now()
	stamp := fmt.Sprint(info.ModTime().UnixNano(), info.Size())
	if stamp == k.stamp {
		return nil
	}
	k.stamp = stamp
	b, err := os.ReadFile(k.file)
	if err != nil {
		return fmt.Errorf("keys: %w", err)
	}
	sums, err := parseKeys(strings.Split(string(b), "\n"))
	if err != nil {
		return fmt.Errorf("%s: %w", k.file, err)
	}
	k.sums = sums
	return nil
}

// current are the keys as they are now.
func (k *Keys) current() [][sha256.Size]byte {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.file != "" && time.Since(k.looked) >= lookEach {
		if err := k.read(); err != nil {
			k.looked = time.Now()
			k.log.Warn("the keys cannot be read again; those before stay good", "error", err)
		}
	}
	return k.sums
}

// find tells which key it is, from 1, in a time that says nothing about the keys.
func (k *Keys) find(given string) (int, bool) {
	sum, which := sha256.Sum256([]byte(given)), 0
	for i, s := range k.current() {
		which = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(sum[:], s[:]), i+1, which)
	}
	return which, which > 0
}
