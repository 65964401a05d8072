// Command planted plants mistakes, one at a time, and searches for the first seed with which
// the simulator finds the mistake. testdata/planted.txt lists the mistakes; the results are in
// the table of docs/planted-bugs.md.
//
//	go run ./scripts/planted                   all mistakes; writes the table
//	go run ./scripts/planted NAME…             only these; the table keeps the other results
//	go run ./scripts/planted -left -for 2m     for two minutes, those that have no result yet
//	go run ./scripts/planted -seeds 500 NAME
//	go run ./scripts/planted -short -for 1m    some that make test is to find: whether it does; no table
//
// The mistakes are applied with go build -overlay, so no file of the tree changes.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"weir/scripts/planted/mistakes"
)

const table = "docs/planted-bugs.md"

type options struct {
	seeds  int
	atOnce int
	left   bool
	long   time.Duration
	short  bool
	from   int
	only   []string
}

func main() {
	var o options
	flag.IntVar(&o.seeds, "seeds", 1000, "how many seeds of each model are tried")
	flag.IntVar(&o.atOnce, "at-once", runtime.GOMAXPROCS(0), "how many mistakes are tried side by side")
	flag.BoolVar(&o.left, "left", false, "only those of which the table says nothing")
	flag.DurationVar(&o.long, "for", time.Hour, "how long to begin with others")
	flag.BoolVar(&o.short, "short", false, "only whether the short form of the tests notices what it is to notice; nothing is written")
	flag.IntVar(&o.from, "from", 0, "with -short, at which mistake of the list to begin")
	flag.Parse()
	o.only = flag.Args()
	if err := tryMistakes(o); err != nil {
		fmt.Fprintln(os.Stderr, "planted:", err)
		os.Exit(1)
	}
}

// isWanted reports whether a mistake is to be tried. known says whether the table has a result.
func (o *options) isWanted(m mistakes.Mistake, known bool) bool {
	return (len(o.only) == 0 || slices.Contains(o.only, m.Name)) && !(o.left && known)
}

func tryMistakes(o options) error {
	all, err := mistakes.Read("testdata/planted.txt")
	if err != nil {
		return err
	}
	before, err := readTable(all)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "planted")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.short {
		return tryShort(dir, all, before, o)
	}
	found, errs, todo := make([]finding, len(all)), make([]error, len(all)), make([]bool, len(all))
	slots, until := make(chan bool, o.atOnce), time.Now().Add(o.long)
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i, m := range all {
		f, known := before[m.Name]
		if todo[i] = o.isWanted(m, known); !todo[i] {
			found[i] = f
		}
	}
	for i, m := range all {
		if !todo[i] {
			continue
		}
		if slots <- true; time.Now().After(until) {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			f, err := tryMistake(filepath.Join(dir, m.Name), m, o.seeds)
			mu.Lock()
			defer mu.Unlock()
			if errs[i] = err; err != nil {
				return
			}
			found[i] = f
			fmt.Printf("%-28s %s\n", m.Name, f)
			errs[i] = saveTable(all, found, o.seeds) // after an interruption, continue with -left
		})
	}
	wg.Wait()
	for i := range errs {
		if errs[i] != nil {
			errs[i] = fmt.Errorf("%s: %w", all[i].Name, errs[i])
		}
	}
	if err := errors.Join(append(errs, saveTable(all, found, o.seeds))...); err != nil {
		return err
	}
	return checkFindings(all, found, o.seeds)
}

// byTest stands for the seed where a test found the mistake.
const byTest = -1

// finding is the result for a mistake: the model and seed that found it, or the test. If model is empty and
// it was tried, no seed found it; if it was not tried, nothing is known.
type finding struct {
	tried bool
	model string
	seed  int // byTest if a test found it
	class string
	what  string
}

func (f finding) String() string {
	if f.model == "" {
		return "NOT NOTICED"
	}
	if f.seed == byTest {
		return f.model
	}
	return fmt.Sprintf("%s, seed %d: %s: %s", f.model, f.seed, f.class, f.what)
}

// tryMistake builds the simulator with a mistake and runs it on the mistake's models.
func tryMistake(dir string, m mistakes.Mistake, seeds int) (finding, error) {
	f := finding{tried: true}
	list, err := writeMistake(dir, m)
	defer os.RemoveAll(dir)
	if err != nil {
		return f, err
	}
	if m.Test != "" {
		return runTest(list, m.Test)
	}
	bin, err := buildSimulator(dir, list)
	if err != nil {
		return f, err
	}
	out, err := exec.CommandContext(context.Background(), bin, append([]string{m.Runs, strconv.Itoa(seeds)}, m.Models...)...).Output()
	if err != nil {
		return f, fmt.Errorf("running it: %w", err)
	}
	if words := strings.SplitN(strings.TrimSpace(string(out)), " ", 4); len(words) == 4 {
		f.model, f.class, f.what = words[0], words[2], strings.TrimPrefix(words[3], words[2]+": ")
		f.seed, err = strconv.Atoi(words[1])
	}
	return f, err
}

// writeMistake writes a file with a mistake, and the list by which go build takes it.
func writeMistake(dir string, m mistakes.Mistake) (list string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	planted, err := m.Plant(".")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, filepath.Base(m.File))
	if err := os.WriteFile(file, planted, 0o644); err != nil {
		return "", err
	}
	from, err := filepath.Abs(m.File)
	if err != nil {
		return "", err
	}
	overlay, _ := json.Marshal(map[string]any{"Replace": map[string]string{from: file}})
	list = filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, overlay, 0o644)
}

func buildSimulator(dir, list string) (bin string, err error) {
	bin = filepath.Join(dir, "try")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-ldflags=-s -w", "-overlay", list, "-o", bin, "./scripts/planted/try").CombinedOutput(); err != nil {
		return "", fmt.Errorf("it does not build: %s", out)
	}
	return bin, nil
}

// runTest runs one test with a mistake, which must fail. A test that does not build says nothing.
func runTest(list, name string) (f finding, err error) {
	pkg, name, _ := strings.Cut(name, " ")
	f.tried = true
	out, err := exec.Command("go", "test", "-short", "-count=1", "-vet=off", "-overlay", list, pkg, "-run", "^"+name+"$").CombinedOutput()
	if err == nil {
		return f, nil
	}
	if !strings.Contains(string(out), "--- FAIL: "+name) {
		return f, fmt.Errorf("%s: %w: %s", name, err, out)
	}
	f.model, f.seed, f.class = name, byTest, "test"
	return f, nil
}
