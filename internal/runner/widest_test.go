package runner_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/deadletter"
	"weir/internal/failtest"
	"weir/internal/soaktest"
)

// widestOf is a model in which rows of Part make as much of one row as lint takes: n of the kind.
func widestOf(kind string, n int) string {
	var derive, fields, set []string
	for i := range n {
		fields, set = append(fields, fmt.Sprintf("f%d: number", i)), append(set, fmt.Sprintf("f%d: f%d", i, i))
		derive = append(derive, map[string]string{
			"sum":      fmt.Sprintf("  Sheet.c%d: {sum: Part.f%d}", i, i),
			"mean":     fmt.Sprintf("  Sheet.c%d: {mean: Part.f%d, round: 2}", i, i),
			"distinct": fmt.Sprintf("  Sheet.c%d: {distinct: Part.f%d}", i, i),
			"max":      fmt.Sprintf("  Sheet.c%d: {max: Part.f%d}", i, i),
			"shown":    fmt.Sprintf("  Sheet.c%d: {%s}", i, shownOf(i)),
			"copy":     "",
		}[kind])
	}
	copies := ""
	if kind == "shown" {
		copies = "\n  Other: {where: {kind: Other}, key: {PK: \"SHEET#{id}\", SK: \"OTHER#{n}\"}, attributes: {id: string!, n: string!, " + strings.Join(fields, ", ") + "}}"
	}
	if kind == "copy" {
		copies = "\n  Copy: {where: {kind: Copy}, key: {PK: COPIES, SK: \"{id}.{n}\"}, attributes: {id: string!, n: string!, " + strings.Join(fields, ", ") + "}}"
		derive = []string{"  Copy: {row: Part, set: {id: id, n: n, " + strings.Join(set, ", ") + "}}"}
	}
	return `
model: wide
tables: {wide: {key: [PK, SK]}}
entities:
  Sheet: {where: {kind: Sheet}, key: {PK: "SHEET#{id}", SK: META}, attributes: {id: string!}}
  Part: {where: {kind: Part}, key: {PK: "SHEET#{id}", SK: "PART#{n}"}, attributes: {id: string!, n: string!, ` + strings.Join(fields, ", ") + "}}" + copies + `
derive:
` + strings.Join(derive, "\n") + "\n"
}

// shownOf declares the most that one row of Sheet shows: of two entities, and the latest of rows.
func shownOf(i int) string {
	if i < 110 {
		return fmt.Sprintf("max: Part.f%d", i)
	}
	return fmt.Sprintf("sum: %s.f%d", []string{"Part", "Other"}[i%2], i)
}

// TestWidestModels: what lint takes can be written, in each way in which weir writes it: a row comes, changes,
// goes, and a copy is made again; beside others in a batch. One more is refused by
// lint, with its line.
func TestWidestModels(t *testing.T) {
	soaktest.Calm(t)
	for _, of := range []struct {
		kind  string
		most  int
		line  int // of the first that is too much
		fault string
	}{
		{"sum", 290, 298, "a row of Part would add to more than 290 counts and sums of one row of Sheet"},
		{"mean", 145, 153, "a row of Part would add to more than 290 counts and sums of one row of Sheet"},
		{"distinct", 40, 48, "a row of Part would add to more than 40 distincts of one row of Sheet"},
		{"max", 110, 118, "more than 110 attributes of Sheet are of statuses and of the latest of rows"},
		{"shown", 400, 409, "more than 400 attributes of Sheet are derived"},
		{"copy", 398, 9, "a row of Copy has 401 attributes of the rule"}, // and id and n
	} {
		t.Run(of.kind, func(t *testing.T) {
			_, err := loadText(t, widestOf(of.kind, of.most+1))
			if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("model.yaml:%d:", of.line)) || !strings.Contains(err.Error(), of.fault) {
				t.Errorf("one more: %v", err)
			}
			m, err := loadText(t, widestOf(of.kind, of.most))
			failtest.On(t, err)
			h := newHarness(t, m)
			put := func(part string, from int) string {
				row := fmt.Sprintf(`put wide {"PK":"SHEET#1","SK":"PART#%s","kind":"Part","id":"1","n":"%s"`, part, part)
				for i := range of.most {
					row += fmt.Sprintf(`,"f%d":%d`, i, from+i)
				}
				return row + "}"
			}
			for _, batch := range [][]string{
				{`put wide {"PK":"SHEET#1","SK":"META","kind":"Sheet"}`}, {put("1", 0), put("2", 7)}, {put("1", 500)},
				{`delete wide {"PK":"COPIES","SK":"1.1"}`}, {`delete wide {"PK":"SHEET#1","SK":"META"}`}, {`put wide {"PK":"SHEET#1","SK":"META","kind":"Sheet"}`},
				{`delete wide {"PK":"SHEET#1","SK":"PART#1"}`, put("2", 900)}, {`delete wide {"PK":"SHEET#1","SK":"PART#2"}`},
			} {
				for _, line := range batch {
					failtest.On(t, h.write(line))
					if of.kind == "shown" {
						failtest.On(t, h.write(strings.NewReplacer("PART#", "OTHER#", `"Part"`, `"Other"`).Replace(line)))
					}
				}
				failtest.On(t, h.settle(len(h.done)+1))
				failtest.On(t, h.runner(nil).EachDeadLetter(t.Context(), func(d deadletter.Letter) error {
					t.Fatalf("%.60s: %s: %s", batch[0], d.Target, d.Reason)
					return nil
				}))
				if differs := h.audit(); differs != "" {
					t.Fatalf("%.60s: %.400s", batch[0], differs)
				}
			}
			h.close()
		})
	}
}
