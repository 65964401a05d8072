package ingest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// TestWidestRow: rows of an entity that lint takes for a migration can be moved, whichever of its
// attributes they have: DynamoDB takes the condition that they are as they were read. A wider entity
// is refused by lint.
func TestWidestRow(t *testing.T) {
	load := func(n int) (*model.Model, error) {
		var fields, into []string
		for i := range n {
			fields, into = append(fields, fmt.Sprintf("f%d: number", i)), append(into, fmt.Sprintf("f%d: f%d", i, i))
		}
		attributes := "attributes: {" + strings.Join(fields, ", ") + "}}\n"
		file := filepath.Join(t.TempDir(), "model.yaml")
		text := "model: wide\ntables: {wide: {key: [PK, SK]}}\nentities:\n" +
			"  Old: {where: {kind: Old}, key: {PK: \"OLD#{id}\", SK: META}, " + attributes +
			"  New: {where: {kind: New}, key: {PK: \"NEW#{id}\", SK: META}, " + attributes +
			"migrate:\n  wide: {rows: Old, into: {New: {" + strings.Join(into, ", ") + "}}}\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return model.Load(file)
	}
	const most = 110
	m, err := load(most)
	if err != nil {
		t.Fatal(err)
	}
	for has := range most + 1 {
		row := value.NewItem(value.Attr{Name: "PK", Value: value.OfString("OLD#1")}, value.Attr{Name: "SK", Value: value.OfString("META")}, value.Attr{Name: "kind", Value: value.OfString("Old")})
		for i := range has {
			row = row.With(value.Attr{Name: fmt.Sprintf("f%d", i), Value: value.OfInt(1)})
		}
		w := store.Write{Delete: true, If: asRead(m.Migrations[0].From, row)}
		if _, is := w.Expressions(); is.Bytes > store.MaxExpressionBytes || is.Operators > store.MaxOperators {
			t.Errorf("with %d of %d attributes: %+v", has, most, is)
		}
	}
	if _, err := load(most + 1); err == nil || !strings.Contains(err.Error(), "too many for a migration") {
		t.Error(err)
	}
}
