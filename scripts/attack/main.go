// Command attack starts the built programs and attacks them. It sends requests without keys
// and with wrong keys, sends malformed bodies, holds hundreds of silent connections open, lets
// many clients write one row at once, kills the process under load, and replays damaged
// recordings. Each part states its promise where it checks it.
//
//	go run ./scripts/attack              all of it, in less than five minutes
//	go run ./scripts/attack -short       the same in seconds, as .ci/run does
//	go run ./scripts/attack kill rows    these parts only
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"weir/internal/web/webtest"
)

// attack is one run.
type attack struct {
	dir   string // the data of the programs
	short bool
	rng   *rand.Rand
}

// parts lists the parts in the order in which they run. Each returns a text that says what it
// did.
var parts = []struct {
	name string
	run  func(*attack) (string, error)
}{
	{"keys", (*attack).attackKeys}, {"bodies", (*attack).attackBodies}, {"idle", (*attack).attackConnections},
	{"rows", (*attack).attackRows}, {"kill", (*attack).attackByKills}, {"files", (*attack).attackFiles},
}

func main() {
	short := flag.Bool("short", false, "seconds instead of minutes")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "of what is random")
	flag.Parse()
	fmt.Printf("attack -seed %d\n", *seed)
	failed, done := false, []string{}
	for i, p := range parts {
		if flag.NArg() > 0 && !slices.Contains(flag.Args(), p.name) {
			continue
		}
		a := &attack{short: *short, rng: rand.New(rand.NewPCG(*seed, uint64(i)))}
		began := time.Now()
		did, err := a.runAttack(p.run)
		if err != nil {
			failed = true
			did = "FAILED: " + err.Error()
		}
		fmt.Printf("%-7s %5.1f s  %s\n", p.name, time.Since(began).Seconds(), did)
		done = append(done, did)
	}
	if failed || len(done) == 0 {
		os.Exit(1)
	}
	fmt.Println("=> " + strings.Join(done, "; "))
}

func (a *attack) runAttack(run func(*attack) (string, error)) (did string, err error) {
	if a.dir, err = os.MkdirTemp("", "weir-attack-"); err != nil {
		return "", err
	}
	defer os.RemoveAll(a.dir)
	return run(a)
}

// shortOrFull returns how often something is done, in a short or a full run.
func (a *attack) shortOrFull(long, short int) int {
	if a.short {
		return short
	}
	return long
}

// server is a program that serves.
type server struct {
	cmd  *exec.Cmd
	base string
	addr string
}

// startServer starts a program of bin with a limit of open files and additional environment
// variables. Its output goes to stderr.
func (a *attack) startServer(files int, env []string, args ...string) (*server, error) {
	cmd := webtest.Limited(files, "bin/weir", append(args, "--data", filepath.Join(a.dir, "data"), "--addr", "127.0.0.1:0")...)
	cmd.Env = append(os.Environ(), env...)
	addr, err := webtest.Serving(cmd, io.Discard)
	if err != nil {
		return nil, err
	}
	return &server{cmd, "http://" + addr + "/v1/gallery/", addr}, nil
}

// stopServer stops a server like a service manager does. It is an error if the server does not end
// cleanly.
func (s *server) stopServer() error {
	err := s.cmd.Process.Signal(syscall.SIGTERM)
	return errors.Join(err, s.cmd.Wait())
}

func (s *server) killServer() {
	s.cmd.Process.Kill()
	s.cmd.Wait()
}

var client = &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

// sendRequest sends one request with headers of the form "NAME: VALUE" and returns status and body.
func sendRequest(method, url, body string, headers ...string) (int, string, error) {
	req, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, v, _ := strings.Cut(h, ": ")
		req.Header.Set(name, v)
	}
	res, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

func albumCommand(id, title string) string {
	return fmt.Sprintf(`{"id": %q, "title": %q, "createdAt": "2026-01-31T12:00:00Z"}`, id, title)
}
