package main

import (
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"weir/scripts/planted/mistakes"
)

// shortSeeds says how many seeds of each model make test runs, by the kind of run.
var shortSeeds = map[string]int{"runs": 4, "builds": 2, "bulk": 2}

// tryShort tries mistakes until the time is over, every 61st of those that the short form of the
// tests is to notice: by a test, or by one of its seeds when the table was made. What a seed does
// changes with the simulator, so only a test that no longer notices its mistake is an error.
func tryShort(dir string, all []mistakes.Mistake, known map[string]finding, o options) error {
	var meant []mistakes.Mistake
	for _, m := range all {
		if f := known[m.Name]; o.isWanted(m, false) && f.model != "" && (f.seed == byTest || f.seed < shortSeeds[m.Runs]) {
			meant = append(meant, m)
		}
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	var first error
	tried, found := 0, 0
	slots, until := make(chan bool, o.atOnce), time.Now().Add(o.long)
	for i := range meant {
		if slots <- true; time.Now().After(until) && i > 0 {
			break
		}
		m := meant[(o.from+i)*61%len(meant)]
		wg.Go(func() {
			defer func() { <-slots }()
			f, err := tryMistake(filepath.Join(dir, fmt.Sprint(i)), m, shortSeeds[m.Runs])
			mu.Lock()
			defer mu.Unlock()
			fmt.Printf("%-28s %s\n", m.Name, f)
			tried++
			if f.model != "" {
				found++
			}
			if err == nil && f.model == "" && m.Test != "" {
				err = fmt.Errorf("%s no longer notices it", m.Test)
			}
			if err != nil && first == nil {
				first = fmt.Errorf("%s: %w", m.Name, err)
			}
		})
	}
	wg.Wait()
	fmt.Printf("=> of %d planted mistakes that the short form is to notice, %d were tried and %d noticed\n", len(meant), tried, found)
	return first
}
