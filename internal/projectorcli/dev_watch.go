package projectorcli

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"weir/internal/model"
	"weir/internal/parallel"
)

// lookEvery is how often files of models are looked at.
const lookEvery = 200 * time.Millisecond

// modelFiles are the files of models, as they were when they were last looked at. Built-in models have none.
type modelFiles struct {
	names []string
	was   []string
}

// watchModels begins to watch the files of models.
func watchModels(names []string) *modelFiles {
	f := &modelFiles{names: names, was: make([]string, len(names))}
	f.look()
	return f
}

// look reports whether a file has other contents than before. A file that is gone for a moment, as some editors leave it, is
// as it was.
func (f *modelFiles) look() (other bool) {
	for i, name := range f.names {
		if text, err := os.ReadFile(name); err == nil && string(text) != f.was[i] {
			f.was[i], other = string(text), true
		}
	}
	return other
}

// changed returns true when a file has another good model, and false when ctx is done. It reports the mistakes of those that
// are not good.
func (f *modelFiles) changed(ctx context.Context, say io.Writer) bool {
	for parallel.Sleep(ctx, lookEvery) == nil {
		if !f.look() {
			continue
		}
		good := true
		for _, name := range f.names {
			if _, err := model.Load(name); err != nil {
				good = false
				fmt.Fprintf(say, "%v\nThe model before this edit goes on\n", err)
			}
		}
		if good {
			return true
		}
	}
	return false
}

// wait returns when a file is changed, or the process is asked to stop.
func (f *modelFiles) wait(p *program) { f.changed(p.ctx, p.stderr) }
