// Package webtest has what scripts of tests ask servers with.
package webtest

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// shown are the headers that HTTP prints.
var shown = []string{
	"Location", "ETag", "Idempotent-Replayed", "Allow", "Accept-Post", "Accept-Put", "Accept-Patch", "Retry-After", "WWW-Authenticate",
}

// HTTP is a command for scripts:
//
//	http [-until REGEXP | -abreast N] METHOD PATH [NAME:VALUE…] [BODY|@FILE]
//
// It asks http://$ADDR, waiting a minute for the server to come, and prints the status, some
// headers and the body. A body is JSON unless a header says something else. With
// -until it asks again until the answer matches, for a minute. With -abreast
// it asks N times, up to 200 at once, # in the body being a number each time, and prints how
// often which status came. It is no program of its own, because a script asks dozens
// of times, and a program takes long to start under the race detector.
func HTTP(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: http [-until REGEXP | -abreast N] METHOD PATH [NAME:VALUE…] [BODY|@FILE]")
	}
	until := ""
	switch args[0] {
	case "-until":
		until, args = args[1], args[2:]
	case "-abreast":
		abreast(ts, args[1], args[2:])
		return
	}
	match, err := regexp.Compile(until)
	ts.Check(err)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		res, err := ask(ts, args)
		switch {
		case err != nil && time.Now().Before(deadline):
		case err != nil:
			ts.Fatalf("%v", err)
		case match.MatchString(res):
			fmt.Fprint(ts.Stdout(), res)
			return
		case time.Now().After(deadline):
			ts.Fatalf("nothing matches %s in a minute: %s", until, res)
		}
	}
}

func abreast(ts *testscript.TestScript, times string, args []string) {
	n, err := strconv.Atoi(times)
	ts.Check(err)
	answers := make([]string, n)
	var wg sync.WaitGroup
	turns := make(chan struct{}, 200) // below what a server takes of one address
	for i := range n {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			mine := slices.Clone(args)
			if last := len(mine) - 1; last > 1 {
				mine[last] = strings.ReplaceAll(mine[last], "#", strconv.Itoa(i))
			}
			res, err := ask(ts, mine)
			if err != nil {
				res = err.Error()
			}
			answers[i], _, _ = strings.Cut(res, "\n")
		})
	}
	wg.Wait()
	count := map[string]int{}
	for _, a := range answers {
		count[a]++
	}
	for _, a := range slices.Sorted(maps.Keys(count)) {
		fmt.Fprintf(ts.Stdout(), "%d times %s\n", count[a], a)
	}
}

func ask(ts *testscript.TestScript, args []string) (string, error) {
	header, body := http.Header{}, ""
	for _, a := range args[2:] {
		name, v, isHeader := strings.Cut(a, ":")
		switch {
		case strings.HasPrefix(a, "@"):
			b, err := os.ReadFile(ts.MkAbs(a[1:]))
			if err != nil {
				return "", err
			}
			body = string(b)
		case isHeader && regexp.MustCompile(`^[A-Za-z-]+$`).MatchString(name):
			header.Set(name, strings.TrimSpace(v))
		default:
			body = a
		}
	}
	if body != "" && header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}
	r, err := http.NewRequest(args[0], "http://"+ts.Getenv("ADDR")+args[1], strings.NewReader(body))
	if err != nil {
		return "", err
	}
	if r.Header = header; header.Get("Host") != "" {
		r.Host = header.Get("Host")
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	var out strings.Builder
	fmt.Fprintln(&out, res.Status)
	for _, name := range shown {
		if v := res.Header.Get(name); v != "" {
			fmt.Fprintf(&out, "%s: %s\n", name, v)
		}
	}
	_, err = io.Copy(&out, res.Body)
	return out.String(), err
}

// Keep is a command for scripts: keep NAME REGEXP sets $NAME to what the first group
// matches in what was printed last.
func Keep(ts *testscript.TestScript, _ bool, args []string) {
	found := regexp.MustCompile(args[1]).FindStringSubmatch(ts.ReadFile("stdout"))
	if len(found) < 2 {
		ts.Fatalf("nothing matches %s", args[1])
	}
	ts.Setenv(args[0], found[1])
}

// Idle opens connections to an address, one after another, of which every other sends
// the beginning of a request, until n are open or stop is called. Those that the
// server ends stay closed.
func Idle(addr string, n int) (stop func(), err error) {
	var all []net.Conn
	stop = func() {
		for _, c := range all {
			c.Close()
		}
	}
	for i := range n {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			stop()
			return nil, err
		}
		if all = append(all, c); i%2 > 0 {
			fmt.Fprint(c, "GET /v1 HTTP/1.1\r\n")
		}
	}
	return stop, nil
}

// Limited is a command that may have so many files open.
func Limited(files int, program string, args ...string) *exec.Cmd {
	return exec.Command("sh", append([]string{"-c", `ulimit -n "$0" && exec "$@"`, strconv.Itoa(files), program}, args...)...)
}

// Serving starts a command that serves, and gives its address once it does. Its talk
// goes to stderr.
func Serving(cmd *exec.Cmd, stderr io.Writer) (addr string, err error) {
	out, err := cmd.StderrPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		fmt.Fprintln(stderr, lines.Text())
		if m := serving.FindStringSubmatch(lines.Text()); m != nil {
			go io.Copy(stderr, out)
			return m[1], nil
		}
	}
	return "", fmt.Errorf("it ended before it served: %w", cmd.Wait())
}

var serving = regexp.MustCompile(`http://([^/\s]+)/v1`)
