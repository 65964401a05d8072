package function

import (
	"encoding/json"
	"testing"
	"time"

	"weir/internal/budget"
	"weir/internal/failtest"
	"weir/internal/lambda"
	"weir/internal/runner"
)

// TestMeter: events of a minute are one line with their sums; what an alarm waits for, and a tick, write what there is.
func TestMeter(t *testing.T) {
	now, lines := time.Unix(1e9, 0), []map[string]any{}
	m := &meter{model: "gallery", now: func() time.Time { return now }, tables: map[string]*reported{}, write: func(b []byte) {
		var line map[string]any
		failtest.On(t, json.Unmarshal(b, &line))
		lines = append(lines, line)
	}}
	r := lambda.Report{Table: "gallery", Records: 3, Applied: 2, Skipped: 1, Age: 5 * time.Second, By: map[string]runner.Counts{"Album.mediaCount": {Applied: 2, Skipped: 1}}}
	m.addReport(r, budget.Use{Units: 1.5})
	if len(lines) != 1 { // the first one of a process
		t.Fatal(lines)
	}
	for range 4 {
		now = now.Add(10 * time.Second)
		m.addReport(r, budget.Use{Units: 1.5})
	}
	r.Age = time.Second
	if now = now.Add(20 * time.Second); len(lines) != 1 {
		t.Fatal(lines)
	}
	m.addReport(r, budget.Use{Units: 1.5})
	by := lines[1]["Derivations"].(map[string]any)["Album.mediaCount"].(map[string]any)
	if is := lines[1]; len(lines) != 2 || is["Records"] != 15.0 || is["Applied"] != 10.0 || is["Age"] != 5000.0 || is["WriteUnits"] != 8.0 || by["Applied"] != 10.0 {
		t.Error(lines[1])
	}
	m.addReport(r, budget.Use{Throttled: 1})
	if len(lines) != 3 || lines[2]["Throttled"] != 1.0 || lines[2]["Records"] != 3.0 {
		t.Error(lines)
	}
	m.addReport(r, budget.Use{})
	m.writeLines()
	if m.writeLines(); len(lines) != 4 {
		t.Error(lines)
	}
	m.every = true
	m.addReport(r, budget.Use{})
	m.addReport(r, budget.Use{})
	if len(lines) != 6 {
		t.Error(lines)
	}
}
