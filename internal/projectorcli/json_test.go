package projectorcli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"weir/internal/build"
	"weir/internal/cli/clitest"
	"weir/internal/console"
	"weir/internal/deploy"
	"weir/internal/doctor"
	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/soaktest"
	"weir/internal/stage"
	"weir/internal/status"
	"weir/internal/store"
)

// jsonPage describes what commands print with -o json.
const jsonPage = "../../docs/guide/json.md"

// TestJSON holds docs/guide/json.md against what commands print, and against the types that they
// print: no field is on one side alone, of another type, or absent where the page says always.
func TestJSON(t *testing.T) {
	soaktest.Calm(t)
	page := clitest.JSONPage(t, jsonPage, "projector")
	dir := t.TempDir()
	data, bad := filepath.Join(dir, "data"), filepath.Join(dir, "bad")
	write := func(name, text string) string {
		t.Helper()
		name = filepath.Join(dir, name)
		failtest.On(t, os.WriteFile(name, []byte(text), 0o600))
		return name
	}
	album := func(key, sequence, more string) string {
		return fmt.Sprintf(`{"eventName":"INSERT","eventSourceARN":"arn:aws:dynamodb:eu-west-1:1:table/gallery/stream/1","dynamodb":{%s"Keys":{"PK":{"S":"%s"},"SK":{"S":"%s"}},"NewImage":{"PK":{"S":"%[2]s"},"SK":{"S":"%[3]s"},%s}}}`+"\n", sequence, "ALBUM#a1", key, more)
	}
	stream := write("stream.jsonl",
		album("METADATA", `"SequenceNumber":"101",`, `"EntityType":{"S":"Album"},"id":{"S":"a1"},"title":{"S":"The sea"},"isPublic":{"S":"true"},"createdAt":{"S":"2025-01-01T00:00:00Z"}`)+
			album("MEDIA#m1", `"SequenceNumber":"102",`, `"EntityType":{"S":"AlbumMedia"},"albumId":{"S":"a1"},"mediaId":{"S":"m1"},"addedAt":{"S":"2025-01-02T00:00:00Z"}`))
	unusable := write("bad.jsonl", album("METADATA", "", `"EntityType":{"S":"Album"}`))
	broken := write("broken.yaml", "model: broken\ncolour: red\n")
	prints := func(want int, args ...string) []byte {
		t.Helper()
		var out, said bytes.Buffer
		if code := run(context.Background(), args, strings.NewReader(""), &out, &said); code != want {
			t.Fatalf("%q: exit code %d\n%s%s", args, code, out.Bytes(), said.Bytes())
		}
		return out.Bytes()
	}
	on := func(dir string, want int, args ...string) []byte {
		t.Helper()
		return prints(want, append(args, "--data", dir, "-o", "json")...)
	}
	by := func(do func(p *program)) []byte {
		var out bytes.Buffer
		do(&program{ctx: t.Context(), stdout: &out, stderr: &bytes.Buffer{}})
		return out.Bytes()
	}
	check := func(section string, is reflect.Type, out []byte) {
		t.Helper()
		checkJSON(t, section, page[section], is, out)
		delete(page, section)
	}

	check("projector replay", reflect.TypeFor[replayed](), on(data, exitGood, "replay", "gallery", stream))
	on(bad, exitCheck, "replay", "gallery", unusable)
	check("projector query MODEL", reflect.TypeFor[[]offered](), on(data, exitGood, "query", "gallery"))
	var rows []map[string]any
	if err := json.Unmarshal(on(data, exitGood, "query", "gallery", "album", "albumId=a1"), &rows); err != nil || len(rows) == 0 || rows[0]["mediaCount"] != 1.0 {
		t.Errorf("%v %v", rows, err)
	}
	check("projector build", reflect.TypeFor[[]builtNow](), on(data, exitGood, "build", "gallery", "Album.mediaCount", "--again"))
	check("projector build --dry-run", reflect.TypeFor[estimated](), on(data, exitGood, "build", "gallery", "--again", "--dry-run"))
	check("projector build --from", reflect.TypeFor[[]enteredNow](), by(func(p *program) {
		c := buildCommand{output: output{"json"}}
		c.printEntered(p, &build.Recording{Of: map[string]*build.Recorded{"Log": {Put: 1, Since: time.Unix(1, 0)}}}, build.Progress{})
	}))
	check("projector build --prune", reflect.TypeFor[[]pruned](), by(func(p *program) {
		json.NewEncoder(p.stdout).Encode([]pruned{{Generation: "1", Removed: true}})
	}))
	if out := on(data, exitGood, "build", "gallery", "--prune"); !json.Valid(out) || out[0] != '[' {
		t.Errorf("%s", out)
	}
	check("projector status", reflect.TypeFor[status.Status](), on(data, exitGood, "status", "gallery"))
	check("projector why", reflect.TypeFor[[]part](), prints(exitGood, "why", "gallery", "Album:a1", "mediaCount", "--from", stream, "-o", "json"))
	failtest.On(t, tampered(data, "gallery", "gallery", "ALBUM#a1", "METADATA", "mediaCount", "7"))
	check("projector verify", reflect.TypeFor[recounted](), on(data, exitCheck, "verify", "gallery"))
	list := on(bad, exitGood, "dead", "list", "gallery")
	check("projector dead list", reflect.TypeFor[[]console.Letter](), list)
	var letters []console.Letter
	if err := json.Unmarshal(list, &letters); err != nil || len(letters) != 1 {
		t.Fatalf("%s: %v", list, err)
	}
	if out := prints(exitGood, "dead", "show", "gallery", letters[0].ID, "--data", bad); !json.Valid(out) || out[0] != '{' {
		t.Errorf("%s", out)
	}
	check("projector deploy tables", reflect.TypeFor[[]deployed](), by(func(p *program) {
		c := deployTables{output: output{"json"}}
		c.print(p, &stage.Names{}, []store.Deployed{{Table: "gallery", Created: true}})
	}))
	check("projector doctor", reflect.TypeFor[examined](), by(func(p *program) {
		x := examined{"gallery", map[doctor.Verdict]int{doctor.Bad: 1}, []doctor.Finding{{Verdict: doctor.Bad, Subject: "clock", Check: "clock", Says: "late"}}}
		x.print(p, "json")
	}))
	check("projector lint", reflect.TypeFor[[]model.Problem](), prints(exitCheck, "lint", broken, "-o", "json"))
	check("projector diff", reflect.TypeFor[model.Diff](), prints(exitGood, "diff", "gallery", "movienight", "-o", "json"))
	check("projector cost", reflect.TypeFor[[]deploy.Way](), prints(exitGood, "cost", "gallery", "--writes", "10/s", "-o", "json"))
	if len(page) > 0 {
		t.Errorf("no command prints what %s has of %q", jsonPage, slices.Sorted(maps.Keys(page)))
	}
}

// TestJSONOfAll: each command that has -o is on the page.
func TestJSONOfAll(t *testing.T) {
	text, err := os.ReadFile(jsonPage)
	failtest.On(t, err)
	var walk func(name string, is reflect.Type)
	walk = func(name string, is reflect.Type) {
		for i := range is.NumField() {
			f := is.Field(i)
			if _, command := f.Tag.Lookup("cmd"); command {
				walk(name+" "+strings.ToLower(f.Name), f.Type)
			} else if f.Type == reflect.TypeFor[output]() && !regexp.MustCompile(`(?m)^## `+name+`\b`).Match(text) {
				t.Errorf("%s is not in %s", name, jsonPage)
			}
		}
	}
	walk("weir", reflect.TypeFor[commands]())
}

// checkJSON holds the fields of a section against the type that is printed, and against what was
// printed of it.
func checkJSON(t *testing.T, section string, page map[string]clitest.Field, is reflect.Type, out []byte) {
	t.Helper()
	typed := map[string]clitest.Field{}
	fieldsOf(typed, "", is)
	for _, path := range slices.Sorted(maps.Keys(typed)) {
		if have, want := page[path], typed[path]; have != want {
			t.Errorf("%s: %s is %+v, on the page %+v", section, path, want, have)
		}
	}
	for path := range page {
		if _, ok := typed[path]; !ok {
			t.Errorf("%s: the page has %s, and nothing prints it", section, path)
		}
	}
	var v any
	if err := json.Unmarshal(out, &v); err != nil {
		t.Fatalf("%s: %v\n%s", section, err, out)
	}
	if seen := printedOf(t, section, page, "", v); seen == 0 {
		t.Errorf("%s printed no field: %s", section, out)
	}
}

// fieldsOf adds the fields that a type has as JSON. The elements of a list have "[]" in their paths,
// but for those of a list that is all that is printed.
func fieldsOf(to map[string]clitest.Field, under string, is reflect.Type) {
	for is.Kind() == reflect.Slice || is.Kind() == reflect.Pointer {
		is = is.Elem()
	}
	for i := range is.NumField() {
		f := is.Field(i)
		name, more, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" {
			continue
		}
		kind, path := kindOf(f.Type), under+name
		to[path] = clitest.Field{Kind: kind, Always: more == ""}
		switch kind {
		case "objects":
			fieldsOf(to, path+"[].", f.Type)
		case "object":
			if is := f.Type; is.Kind() == reflect.Struct || is.Kind() == reflect.Pointer {
				fieldsOf(to, path+".", f.Type)
			}
		}
	}
}

// kindOf is what the page calls a type.
func kindOf(is reflect.Type) string {
	switch {
	case is.Kind() == reflect.Pointer:
		return kindOf(is.Elem())
	case is == reflect.TypeFor[time.Time]():
		return "time"
	case is == reflect.TypeFor[json.RawMessage](), is.Kind() == reflect.Map, is.Kind() == reflect.Struct:
		return "object"
	case is.Kind() == reflect.Slice:
		return kindOf(is.Elem()) + "s"
	case is.Kind() == reflect.String:
		return "string"
	case is.Kind() == reflect.Bool:
		return "boolean"
	}
	return "number"
}

// printedOf holds what was printed against the page, and counts the fields.
func printedOf(t *testing.T, section string, page map[string]clitest.Field, under string, v any) (seen int) {
	t.Helper()
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			seen += printedOf(t, section, page, under, x)
		}
	case map[string]any:
		for path, f := range page {
			name, ok := strings.CutPrefix(path, under)
			if _, has := v[name]; ok && f.Always && !strings.Contains(name, ".") && !has {
				t.Errorf("%s printed no %s: %v", section, path, v)
			}
		}
		for name, x := range v {
			f, ok := page[under+name]
			if !ok || f.Kind != clitest.KindOf(f.Kind, x) {
				t.Errorf("%s printed %s: %v, on the page %+v", section, under+name, x, f)
			}
			seen++
			if f.Kind == "objects" {
				seen += printedOf(t, section, page, under+name+"[].", x)
			}
		}
	}
	return seen
}
