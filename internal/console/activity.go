package console

import (
	"crypto/rand"
	"time"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/system"
)

// Activity is what the followers of a process have applied. It keeps a bounded amount of it. Its
// methods may be called from many goroutines.
type Activity struct {
	run    string // names this process, so that numbers of another one are not taken for its own
	began  time.Time
	models map[string]*hub
}

// NewActivity returns an Activity of models that has seen nothing.
func NewActivity(models []*system.Part) *Activity {
	a := &Activity{run: rand.Text()[:8], began: time.Now(), models: map[string]*hub{}}
	for _, p := range models {
		a.models[p.Model.Name] = &hub{}
	}
	return a
}

// Records returns the function that takes in the records of a model once they are applied: a
// runner.Follower.Applied. It never waits for a browser.
// The records are kept after the call, so they must not change. The model must be one that
// NewActivity was given.
func (a *Activity) Records(model string) func(*model.Table, []events.Record) {
	return a.models[model].publish
}
