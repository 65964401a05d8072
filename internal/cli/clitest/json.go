package clitest

import (
	"maps"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"weir/internal/failtest"
)

// Field is what docs/guide/json.md says of a field: what it has, and whether it is always there.
type Field struct {
	Kind   string
	Always bool
}

// fieldsLine is a line of docs/guide/json.md: paths, two spaces or more, the type, and what the fields are.
var fieldsLine = regexp.MustCompile(`^(\S+(?:, \S+)*) {2,}((?:string|number|boolean|object|time)s?)(?: {2,}|\n)`)

// JSONPage reads the blocks of text of docs/guide/json.md that are about a program, by the heading above each and then by the path
// of the field. A line may have several fields of one type: "a, b?  number  what they are".
func JSONPage(t *testing.T, path, program string) map[string]map[string]Field {
	t.Helper()
	text, err := os.ReadFile(path)
	failtest.On(t, err)
	page, section := map[string]map[string]Field{}, ""
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(line, "## "); ok {
			section = strings.NewReplacer("weir ingest ", "ingest ", "weir ", "projector ").Replace(strings.TrimSpace(name))
			page[section] = map[string]Field{}
		}
		if m := fieldsLine.FindStringSubmatch(line); m != nil {
			for name := range strings.SplitSeq(m[1], ", ") {
				path, optional := strings.CutSuffix(name, "?")
				if _, twice := page[section][path]; twice {
					t.Errorf("%s has %s twice", section, path)
				}
				page[section][path] = Field{m[2], !optional}
			}
		}
	}
	maps.DeleteFunc(page, func(section string, _ map[string]Field) bool { return !strings.HasPrefix(section, program+" ") })
	return page
}

// KindOf is what the page calls a value that was read from JSON. said is what the page has, by which
// times are told from other strings, and what lists without elements are.
func KindOf(said string, v any) string {
	switch v := v.(type) {
	case string:
		if _, err := time.Parse(time.RFC3339, v); err == nil && said == "time" {
			return said
		}
		return "string"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case []any:
		if len(v) > 0 {
			return KindOf("", v[0]) + "s"
		}
		return said
	case map[string]any:
		return "object"
	}
	return "null"
}
