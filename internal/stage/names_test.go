package stage

import (
	"cmp"
	"errors"
	"strings"
	"testing"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/store"
)

// tablesOf are the own table and tables with these logical names.
func tablesOf(names ...string) []store.Table {
	out := []store.Table{owntable.Table()}
	for _, n := range names {
		out = append(out, store.Table{Name: n})
	}
	return out
}

func namesOf(t *testing.T, stage, maps string, tables ...string) Names {
	t.Helper()
	pairs, err := ParseTables(cmp.Or(maps, "{}"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := New(Stage{stage, pairs}, tablesOf(tables...))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNamesOfStages(t *testing.T) {
	for _, good := range []string{"default", "prod", "eu-test-2", "0", "-", strings.Repeat("a", 32)} {
		if err := CheckName(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "Prod", "a_b", "a b", "prod\n", "../x", "a/b", "ä", "\x00", "a.b", strings.Repeat("a", 33)} {
		if err := CheckName(bad); err == nil || bad != "" && !strings.Contains(err.Error(), "1 to 32 lower-case letters") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestParseTables(t *testing.T) {
	want := []Pair{{"Gallery", "gallery-prod"}, {"Votes", "v.1_x"}}
	for _, text := range []string{
		"Gallery=gallery-prod,Votes=v.1_x",
		" Gallery = gallery-prod ,, Votes=v.1_x,",
		"Gallery=gallery-prod\r\nVotes=v.1_x\r\n",
		"\n\nGallery=gallery-prod\nVotes=v.1_x",
		`{"Gallery": "gallery-prod", "Votes": "v.1_x"}`,
		" {\n\"Gallery\": \"gallery-prod\",\n\"Votes\": \"v.1_x\"}\n",
	} {
		got, err := ParseTables(text)
		if err != nil || len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if got, err := ParseTables("{ }"); err != nil || len(got) != 0 {
		t.Errorf("no names: %v, %v", got, err)
	}
	for text, want := range map[string]string{
		"":                                    `the map of tables is empty`,
		" ,\n":                                `the map of tables is empty`,
		"Gallery":                             `"Gallery" is not NAME=REAL`,
		"Gallery=":                            `the table Gallery is mapped to ""; DynamoDB allows`,
		"=gallery-prod":                       `no table of a model has the name ""`,
		"Gallery=a=b":                         `mapped to "a=b"; DynamoDB allows`,
		"Gallery=ab":                          `mapped to "ab"; DynamoDB allows names of 3 to 255`,
		"Gallery=x\x00yz":                     `mapped to "x\x00yz"`,
		"Gallery=galérie":                     `mapped to "galérie"`,
		"Gallery=../../etc":                   `mapped to "../../etc"`,
		"Gallery=" + strings.Repeat("a", 256): `DynamoDB allows`,
		"Gallery=arn:aws:dynamodb:eu-west-1:1:table/gallery-prod": `give the table's name, which is what follows :table/`,
		"A12=b12\nB12=c12\nC12":                                   `line 3: "C12" is not NAME=REAL`,
		"A12=b12\n\nB12=c!":                                       `line 3: the table B12`,
		`{"Gallery": 1}`:                                          `/Gallery is not a string`,
		`{"Gallery": {"a": "b"}}`:                                 `/Gallery is not a string`,
		"{\n\"Gallery\": null}":                                   `line 2: `,
		`{"Gallery": "gallery-prod"`:                              `not a JSON object`,
		`{"Gallery": "gallery-prod"} {}`:                          `something follows the object`,
		`{Gallery: "gallery-prod"}`:                               `not a JSON object`,
		"{\"Gallery\": \"g-1\",\n\"Gall\": \"x\"}":                `mapped to "x"`,
	} {
		if got, err := ParseTables(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v; should be %s", text, got, err, want)
		}
	}
}

func TestMapsThatCannotBe(t *testing.T) {
	tables := []string{"AAA", "BBB", "weir-prod"}
	for _, c := range []struct{ stage, maps, want string }{
		{"default", "CCC=ddd", "the table CCC is mapped to ddd, and no model of this command has such a table; the tables are AAA, BBB, weir-prod"},
		{"default", "aaa=ddd", "the table aaa is mapped"}, // names are exact
		{"default", "AAA=ddd,AAA=eee", "the table AAA is mapped twice, to ddd and to eee"},
		{"default", `{"AAA": "ddd", "AAA": "ddd"}`, "mapped twice"},
		{"default", "AAA=ddd,BBB=ddd", "the tables AAA and BBB would both be ddd"},
		{"default", "AAA=BBB", "the tables AAA and BBB would both be BBB"},
		{"default", "weir=weir-x", "its name follows from the stage alone, and is weir;"},
		{"default", "AAA=weir", "the table AAA is mapped to weir, which is the own table of the stage default"},
		{"dev", "AAA=weir", "the table AAA is mapped to weir, which is the own table of the stage default"},
		{"dev", "AAA=weir-dev", "the table AAA would be weir-dev, which is the own table of this stage"},
		{"prod", "", "the table weir-prod would be weir-prod, which is the own table of this stage"},
	} {
		pairs, err := ParseTables(cmp.Or(c.maps, "{}"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := New(Stage{c.stage, pairs}, tablesOf(tables...)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %s: %v, should be %s", c.stage, c.maps, err, c.want)
		}
	}
}

// TestBothWays: what is real is logical again, and no other table's, also where names
// change places.
func TestBothWays(t *testing.T) {
	for _, c := range []struct{ stage, maps string }{
		{"default", ""}, {"prod", ""}, {"", ""},
		{"default", "AAA=ddd"},
		{"prod", "AAA=BBB,BBB=AAA"},
		{"prod", "AAA=BBB,BBB=CCC,CCC=AAA"},
		{"prod", "AAA=BBB,BBB=weir-dev,CCC=AAA"},
		{"default", "AAA=AAA"},
	} {
		n := namesOf(t, c.stage, c.maps, "AAA", "BBB", "CCC")
		seen := map[string]bool{"weir": true, n.Own(): true}
		for _, logical := range []string{"AAA", "BBB", "CCC"} {
			real := n.Real(logical)
			if seen[real] {
				t.Errorf("%v: two tables are %s", c, real)
			}
			seen[real] = true
			if back, err := n.Logical(real); err != nil || back != logical {
				t.Errorf("%v: %s is %s, and that %s, %v", c, logical, real, back, err)
			}
			if said := n.Said(logical); said != logical {
				t.Errorf("%v: the model's %s is taken for %s", c, logical, said)
			}
		}
		own := "weir"
		if c.stage == "prod" {
			own = "weir-prod"
		}
		if n.Own() != own || n.Real(owntable.TableName) != own {
			t.Errorf("%v: the own table is %s, %s", c, n.Own(), n.Real(owntable.TableName))
		}
	}
}

func TestRecordsFromOutside(t *testing.T) {
	n := namesOf(t, "prod", "AAA=aaa-1,BBB=CCC,CCC=BBB", "AAA", "BBB", "CCC", "DDD")
	for real, logical := range map[string]string{
		"aaa-1": "AAA", "BBB": "CCC", "CCC": "BBB", "DDD": "DDD", "": "", "other": "other", "aaa": "aaa",
		"weir": "weir", "weir-prod": "weir-prod", // tables that are not the model's
	} {
		entries := []events.Entry{{Record: events.Record{Table: "DDD"}}, {Record: events.Record{Table: real}}, {Record: events.Record{Table: real}, Bad: &events.Bad{}}}
		if err := n.Entries(entries); err != nil || entries[0].Record.Table != "DDD" || entries[1].Record.Table != logical || entries[2].Record.Table != logical {
			t.Errorf("%q: %q and %q, %v; should be %q", real, entries[1].Record.Table, entries[2].Record.Table, err, logical)
		}
	}
	entries := []events.Entry{{Record: events.Record{Table: "aaa-1"}}, {Record: events.Record{Table: "AAA"}, Location: events.Location{File: "f.json", Line: 7}}}
	err := n.Entries(entries)
	if !errors.Is(err, ErrMap) || !strings.Contains(err.Error(), "f.json:7") || !strings.Contains(err.Error(), "aaa-1") || !strings.Contains(err.Error(), "--tables") {
		t.Errorf("a record under the logical name of a table that is elsewhere: %v", err)
	}
	for said, want := range map[string]string{"AAA": "AAA", "aaa-1": "AAA", "BBB": "BBB", "other": "other", "": ""} {
		if got := n.Said(said); got != want {
			t.Errorf("%q is taken for %q, not %q", said, got, want)
		}
	}
	var none Names
	if err := none.Entries(entries); err != nil || none.Said("x") != "x" || none.Real("x") != "x" {
		t.Error("no names translate something")
	}
}

func TestStagesApart(t *testing.T) {
	type place struct{ own, dir, prefix string }
	seen := map[place]string{}
	for _, s := range []string{"default", "prod", "dev", "store", "search", "spool", "-", "stage-prod"} {
		of := Stage{Name: s}
		p := place{of.Own(), of.Dir("data"), of.Prefix()}
		if other, taken := seen[p]; taken {
			t.Errorf("%s and %s share %v", s, other, p)
		}
		seen[p] = s
	}
	if (Stage{}).Dir("data") != "data" || (Stage{Name: "prod"}).Dir("") != "" {
		t.Error("the default stage has a directory of its own, or a stage without files has one")
	}
	if got := (Stage{"prod", []Pair{{"AAA", "x-1"}, {"BBB", "x-2"}}}).Map(); got != "AAA=x-1,BBB=x-2" {
		t.Errorf("map %q", got)
	}
}
