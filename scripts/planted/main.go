// Command planted plants mistakes, one at a time, and looks for the first seed of
// the simulator that notices: testdata/planted.txt has them, docs/planted-bugs.md is
// what comes of it.
//
//	go run ./scripts/planted                   all of them, and the table
//	go run ./scripts/planted NAME…             these, printed
//	go run ./scripts/planted -seeds 500 NAME
//
// The mistakes are laid over the tree by go build -overlay: no file is changed.
package main

import (
	"context"
	"encoding/json"
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

	"weir/scripts/planted/mistakes"
)

const table = "docs/planted-bugs.md"

func main() {
	seeds := flag.Int("seeds", 200, "how many seeds of a model are tried")
	flag.Parse()
	if err := run(*seeds, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "planted:", err)
		os.Exit(1)
	}
}

func run(seeds int, only []string) error {
	all, err := mistakes.Read("testdata/planted.txt")
	if err != nil {
		return err
	}
	if len(only) > 0 {
		all = slices.DeleteFunc(all, func(m mistakes.Mistake) bool { return !slices.Contains(only, m.Name) })
	}
	dir, err := os.MkdirTemp("", "planted")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	found := make([]found, len(all))
	errs := make([]error, len(all))
	slots := make(chan bool, runtime.GOMAXPROCS(0))
	var wg sync.WaitGroup
	for i, m := range all {
		slots <- true
		wg.Go(func() {
			defer func() { <-slots }()
			if found[i], errs[i] = try(filepath.Join(dir, m.Name), m, seeds); errs[i] == nil {
				fmt.Printf("%-28s %s\n", m.Name, found[i])
			}
		})
	}
	wg.Wait()
	missed := 0
	for i, err := range errs {
		if err != nil {
			return fmt.Errorf("%s: %w", all[i].Name, err)
		}
		if found[i].model == "" && all[i].Unseen == "" {
			missed++
		}
	}
	if len(only) == 0 {
		if err := write(all, found, seeds); err != nil {
			return err
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d mistakes are not noticed within %d seeds of each model", missed, len(all), seeds)
	}
	return nil
}

// found is how a mistake was noticed: by the nth schedule, counted from 1. No model
// means that it was not.
type found struct {
	model string
	n     int
	class string
	what  string
}

func (f found) String() string {
	if f.model == "" {
		return "NOT NOTICED"
	}
	return fmt.Sprintf("%s, seed %d: %s: %s", f.model, f.n-1, f.class, f.what)
}

// fewSeeds are tried where nothing is expected.
const fewSeeds = 40

// try builds the simulator with a mistake and runs it on each of its models.
func try(dir string, m mistakes.Mistake, seeds int) (found, error) {
	bin, err := build(dir, m)
	if err != nil {
		return found{}, err
	}
	defer os.RemoveAll(dir)
	if m.Unseen != "" {
		seeds = min(seeds, fewSeeds)
	}
	best := found{n: seeds + 1}
	for _, name := range m.Models {
		out, err := exec.CommandContext(context.Background(), bin, name, "0", strconv.Itoa(best.n-1)).Output()
		if err != nil {
			return best, fmt.Errorf("on %s: %w", name, err)
		}
		if words := strings.SplitN(strings.TrimSpace(string(out)), " ", 3); len(words) == 3 {
			seed, _ := strconv.Atoi(words[0])
			best = found{name, seed + 1, words[1], strings.TrimPrefix(words[2], words[1]+": ")}
		}
	}
	return best, nil
}

func build(dir string, m mistakes.Mistake) (bin string, err error) {
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
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, overlay, 0o644); err != nil {
		return "", err
	}
	bin = filepath.Join(dir, "try")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-overlay", list, "-o", bin, "./scripts/planted/try").CombinedOutput(); err != nil {
		return "", fmt.Errorf("it does not build: %s", out)
	}
	return bin, nil
}

// write makes the table.
func write(all []mistakes.Mistake, found []found, seeds int) error {
	var ns []int
	var seen, unseen strings.Builder
	missed := 0
	for i, m := range all {
		f := found[i]
		switch {
		case f.model != "":
			ns = append(ns, f.n)
			fmt.Fprintf(&seen, "| %s | `%s` | %s, seed %d | %s |\n", m.Sentence, m.File, f.model, f.n-1, f.class)
		case m.Unseen != "":
			fmt.Fprintf(&unseen, "| %s | `%s` | %s |\n", m.Sentence, m.File, m.Unseen)
		default:
			missed++
			fmt.Fprintf(&seen, "| %s | `%s` | **nothing** | |\n", m.Sentence, m.File)
		}
	}
	slices.Sort(ns)
	median := 0
	if len(ns) > 0 {
		median = ns[len(ns)/2]
	}
	text := fmt.Sprintf(`# Planted bugs

Mistakes that somebody would make, each planted by itself, and the first seed of the simulator that notices it. Made by
§go run ./scripts/planted§; the mistakes, as text and text, are in §testdata/planted.txt§, and how they are planted is
decision 55.

%d are noticed, the median by run %d; %d are not within %d seeds of each model.

| mistake | where | noticed by | as |
|---|---|---|---|
%s
## What changes nothing by itself

Of these mistakes something else makes good what they do, or the simulated world does not have what they need.

| mistake | where | why |
|---|---|---|
%s`, len(ns), median, missed, seeds, seen.String(), unseen.String())
	return os.WriteFile(table, []byte(strings.ReplaceAll(text, "§", "`")), 0o644)
}
