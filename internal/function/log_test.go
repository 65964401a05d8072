package function

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/budget"
	"weir/internal/failtest"
	"weir/internal/lambda"
	"weir/internal/measures"
	"weir/internal/model"
	"weir/internal/reader"
	"weir/internal/stage"
)

// TestDimensions: a metric is one of the model, and of the table too if that is asked for. A lag that is not known of one table is not
// known of the model; the others keep theirs.
func TestDimensions(t *testing.T) {
	prod := stage.Stage{Name: "prod"}
	m := &model.Model{Name: "shop"}
	tick := lambda.Tick{Tables: []reader.Watched{{Table: "orders", Lag: time.Second, Known: true}, {Table: "people"}}}
	for _, c := range []struct {
		metrics, dimensions string
		lag                 bool
	}{{"", `[["Stage","Model"]]`, false}, {"event,table", `[["Stage","Model"],["Stage","Model","Table"]]`, true}} {
		t.Setenv(envMetrics, c.metrics)
		each, by, err := metricsOfEnvironment(prod)
		failtest.On(t, err)
		if each != c.lag {
			t.Errorf("%q: for each event: %v", c.metrics, each)
		}
		line := string(metricLines(by, m.Name, lambda.Report{Table: "orders"}, budget.Use{}, time.Unix(1, 0)))
		if !strings.Contains(line, `"Dimensions":`+c.dimensions+`,`) || !strings.Contains(line, `"Table":"orders"`) || !strings.Contains(line, `"Stage":"prod"`) {
			t.Errorf("%q: %s", c.metrics, line)
		}
		line = string(gaugeLines(by, m, &tick, 0, time.Unix(1, 0)))
		if strings.Contains(line, `"Dimensions":[["Stage","Model","Table"]],"Metrics":[{"Name":"Lag"`) != c.lag || strings.Contains(line, `"Lag":1000`) != c.lag {
			t.Errorf("%q: %s", c.metrics, line)
		}
	}
	t.Setenv(envMetrics, "tables")
	if _, _, err := metricsOfEnvironment(prod); err == nil {
		t.Error("an unknown word is taken")
	}
}

// TestLogIsTheList: the lines of an event and of a look have each metric of the list with its unit and no other, each with what the
// report says of it.
func TestLogIsTheList(t *testing.T) {
	r := lambda.Report{
		Table: "albums", Records: 9, Applied: 1, Skipped: 2, Dead: 3, Again: 4, Old: 5, Age: 6 * time.Second, OutOfOrder: true, Why: errors.New("x"), Refused: []string{"shelves"},
	}
	used := budget.Use{Units: 6.5, Throttled: 8, Waited: 9 * time.Millisecond}
	type logLine struct {
		AWS struct {
			CloudWatchMetrics []struct {
				Namespace  string
				Dimensions [][]string
				Metrics    []struct{ Name, Unit string }
			}
		} `json:"_aws"`
	}
	var line, looked logLine
	var all map[string]any
	text, refused, _ := bytes.Cut(metricLines(dimensions{}, "gallery", r, used, time.Unix(1, 0)), []byte("\n"))
	if err := errors.Join(json.Unmarshal(text, &line), json.Unmarshal(text, &all)); err != nil {
		t.Fatal(err)
	}
	m, err := model.Load("gallery")
	if err != nil {
		t.Fatal(err)
	}
	tick := lambda.Tick{Tables: []reader.Watched{{Table: "gallery", Lag: 7 * time.Second, Known: true}}, Letters: map[string]int{"": 2, "gallery": 8}, Counted: true}
	text = gaugeLines(dimensions{}, m, &tick, 0, time.Unix(1, 0))
	if err := errors.Join(json.Unmarshal(text, &looked), json.Unmarshal(text, &all)); err != nil {
		t.Fatal(err)
	}
	tick.Tables[0].Known = false
	if text := gaugeLines(dimensions{}, m, &tick, 0, time.Unix(1, 0)); bytes.Contains(text, []byte("Lag")) {
		t.Errorf("a lag that is not known is said: %s", text)
	}
	is := map[string]float64{
		"Lag": 7000, "OpenDeadLetters": 10,
		"Records": 9, "Applied": 1, "Skipped": 2, "DeadLetters": 3, "Again": 4, "Old": 5, "Age": 6000, "OutOfOrder": 1, "WriteUnits": 7, "Throttled": 8, "BudgetWait": 9, "Refused": 0,
	}
	units := map[string]string{}
	for _, m := range append(line.AWS.CloudWatchMetrics[0].Metrics, looked.AWS.CloudWatchMetrics[0].Metrics...) {
		units[m.Name] = m.Unit
	}
	n := 0
	for _, m := range measures.All() {
		for _, l := range m.Log {
			if n++; units[l.Name] != l.Unit {
				t.Errorf("%s has the unit %q, and the list %q", l.Name, units[l.Name], l.Unit)
			}
			if want, ok := is[l.Name]; !ok || all[l.Name] != want {
				t.Errorf("%s is %v, should be %v", l.Name, all[l.Name], want)
			}
		}
	}
	if n != len(units) || n != len(is) || len(values(r, used))+2 != n {
		t.Errorf("the line has %d metrics, the list %d: %v", len(units), n, units)
	}
	if !slices.Equal(line.AWS.CloudWatchMetrics[0].Dimensions[0], []string{"Model"}) {
		t.Errorf("the dimensions are %v", line.AWS.CloudWatchMetrics[0].Dimensions)
	}
	if !bytes.Contains(refused, []byte(`"Table":"shelves"`)) || !bytes.Contains(refused, []byte(`"Refused":1`)) || bytes.Contains(refused, []byte(`"Applied"`)) {
		t.Errorf("the table that refused a call is not named: %s", refused)
	}
}
