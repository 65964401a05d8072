package model

import (
	"fmt"
	"strings"
	"testing"
)

// repeated joins n texts, in each of which %d is its number.
func repeated(n int, text, sep string) string {
	var all []string
	for i := range n {
		all = append(all, strings.ReplaceAll(text, "%d", fmt.Sprint(i)))
	}
	return strings.Join(all, sep)
}

// tooWide returns a model with n of something that has a limit.
func tooWide(what string, n int) string {
	text := `
model: wide
tables: {wide: {key: [PK, SK]}}
entities:
  Sheet: {where: {kind: Sheet}, key: {PK: "SHEET#{id}", SK: META}, attributes: {id: string!}}
  Part: {where: {kind: Part}, key: {PK: "SHEET#{id}", SK: "PART#{n}"}, attributes: {id: string!, n: string!, ` + repeated(n, "f%d: number", ", ") + `}}
  Copy: {where: {kind: Copy}, key: {PK: COPIES, SK: "{id}.{n}"}, attributes: {id: string!, n: string!, ` + repeated(n, "f%d: number", ", ") + "}}\n"
	switch what {
	case "counts":
		return text + "derive:\n" + repeated(n, "  Sheet.c%d: {sum: Part.f%d}", "\n") + "\n  Copy: {row: Part, set: {id: id, n: n, f0: f0}}\n"
	case "shown": // two each
		return text + "derive:\n" + repeated(n, "  Sheet.c%d: {sum: Part.f%d}\n  Sheet.d%d: {sum: Copy.f%d}", "\n") + "\n  Copy: {row: Part, set: {id: id, n: n, f0: f0}}\n"
	case "distincts":
		return text + "derive:\n" + repeated(n, "  Sheet.c%d: {distinct: Part.f%d}", "\n") + "\n  Copy: {row: Part, set: {id: id, n: n, f0: f0}}\n"
	case "latest":
		return text + "derive:\n" + repeated(n, "  Sheet.c%d: {latest: Part.f%d, by: n}", "\n") + "\n  Copy: {row: Part, set: {id: id, n: n, f0: f0}}\n"
	case "follows":
		return text + "derive:\n" + repeated(n, "  Part.s%d: {follow: Sheet.id}", "\n") + "\n  Copy: {row: Part, set: {id: id, n: n, f0: f0}}\n"
	case "copies":
		return text + "derive:\n  Copy: {row: Part, set: {id: id, n: n, " + repeated(n, "f%d: f%d", ", ") + "}}\n"
	default:
		return text + "migrate:\n  parts: {rows: Part, into: {Copy: {" + repeated(n, "f%d: f%d", ", ") + "}}}\n"
	}
}

// TestWidths: what no write could hold is refused, at the declaration that is too much, once; one less is
// taken. The runner's TestWidestModels writes what is taken.
func TestWidths(t *testing.T) {
	for _, of := range []struct {
		what string
		most int
		want string
	}{
		{"counts", 290, "m.yaml:299:3: a row of Part would add to more than 290 counts and sums of one row of Sheet: one write cannot hold them, so none would count. A mean and a distinct are two (leave some out, or derive them on another entity, which has a row of its own)"},
		{"shown", 200, "m.yaml:409:3: more than 400 attributes of Sheet are derived: one write cannot hold them, so none would be shown (leave some out, or derive them on another entity, which has a row of its own)"},
		{"distincts", 40, "m.yaml:49:3: a row of Part would add to more than 40 distincts of one row of Sheet: one transaction cannot hold them, so none would count (leave some out, or derive them on another entity, which has a row of its own)"},
		{"latest", 110, "m.yaml:119:3: more than 110 attributes of Sheet are of statuses and of the latest of rows: one write cannot hold them, so none would be shown (leave some out, or derive them on another entity, which has a row of its own)"},
		{"follows", 30, "m.yaml:39:3: more than 30 attributes of Part follow other rows: one write cannot hold them, so none would be shown (leave some out, or follow a map that has several)"},
		{"copies", 398, "m.yaml:9:3: a row of Copy has 401 attributes of the rule, which are too many for one write: the limit is 400, and one that follows another row is three (copy fewer attributes, or put some of them into a map and copy the map)"},
		{"moved", 108, "m.yaml:9:30: rows of Part have 111 attributes, which are too many for a migration: it asks for each of them as it was read, and the limit is 110 (move its rows by a program of your own, or declare as a map what belongs together)"},
	} {
		if _, err := Parse("m.yaml", []byte(tooWide(of.what, of.most))); err != nil {
			t.Errorf("%s, %d: %v", of.what, of.most, err)
		}
		_, err := Parse("m.yaml", []byte(tooWide(of.what, of.most+10)))
		if err == nil || strings.Count(err.Error(), "too many")+strings.Count(err.Error(), "cannot hold") > 2 {
			t.Errorf("%s: %v", of.what, err)
		}
		if _, err = Parse("m.yaml", []byte(tooWide(of.what, of.most+1))); err == nil || strings.Split(err.Error(), "\n")[0] != of.want {
			t.Errorf("%s: %v", of.what, err)
		}
	}
}
