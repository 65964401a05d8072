package projections

import (
	"slices"
	"testing"

	"weir/internal/model"
	"weir/internal/value"
)

// TestMissingRows: a row that reaches two words of a status counts once for its target.
func TestMissingRows(t *testing.T) {
	m, err := model.Parse("m.yaml", []byte(`model: tasks
tables: {tasks: {key: [id]}}
entities:
  Task: {where: {kind: task}, key: {id: "TASK#{task}"}, attributes: {state: {type: string, enum: [new, begun, done]}}}
  Step: {where: {kind: step}, key: {id: "STEP#{step}"}, attributes: {task: string, last: boolean}}
derive:
  Task.state: {steps: {begun: {when: Step}, done: {when: Step, where: {last: true}}}}
  Task.steps: {count: Step}
`))
	if err != nil {
		t.Fatal(err)
	}
	var of MissingTargets
	for _, step := range []string{"1", "2"} {
		of.AddRow(m.Entity("Step"), value.NewItem(
			value.Attr{Name: "id", Value: value.OfString("STEP#" + step)}, value.Attr{Name: "kind", Value: value.OfString("step")},
			value.Attr{Name: "task", Value: value.OfString("a")}, value.Attr{Name: "last", Value: value.OfBool(true)},
		))
	}
	if got, want := of.Missing(), []Missing{{"Task.state", 2, 1}, {"Task.steps", 2, 1}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
