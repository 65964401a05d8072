package kinds

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/projections/copies"
	"weir/internal/store"
	"weir/internal/value"
	"weir/models"
)

// declaring has what decides whether a declared name changes a row: names in the primary key and in
// the keys of indexes, key attributes that are names themselves, and a where that fixes one.
const declaring = `model: declaring
tables:
  Shop: {key: [PK, SK], indexes: {GSI1: {key: [G1, G2]}, GSI2: {key: [G3, G4]}}}
  Bare: {key: [user, item], indexes: {GSI1: {key: [shop, at]}}}
entities:
  Order: {table: Shop, where: {kind: order}, key: {PK: "O#{id}", SK: METADATA}, attributes: {customer: string!, id: string!, sku: string!, total: number, at: string}}
  Item: {table: Shop, where: {kind: item}, key: {PK: "C#{customer}", SK: "ITEM#{key}", G1: "SKU#{sku}", G2: "{key}"}, attributes: {total: number}}
  Lot: {table: Shop, where: {kind: lot, G3: lots}, key: {PK: "LOT#{id}", SK: LOT, G1: "{G1}", G2: "LOT#{at}", G3: "{G3}", G4: "AT#{at}"}, attributes: {total: number}}
  Mine: {table: Bare, where: {kind: mine}, key: {user: "{user}", item: "{item}", shop: "SHOP#{sku}", at: "{at}"}, attributes: {total: number}}
  Day: {table: Shop, where: {kind: day}, key: {PK: "DAY#{customer}", SK: "{total}", G1: "{customer}", G2: "{total}", G3: "D#{total}"}, attributes: {orders: number}}
derive:
  Item: {row: Order, set: {customer: customer, key: id, sku: sku, total: total}}
  Lot: {row: Order, set: {id: id, at: at, G1: sku, total: total}}
  Mine: {row: Order, set: {user: customer, item: id, sku: sku, at: at, total: total}}
  Day: {group: Order, by: {customer: customer, total: total}, set: {orders: count}}
`

// TestDeclaredNamesOfMadeRows: where an attribute is declared, or no longer, and the definition of a
// copy, a history, a feed or a group keeps its hash, the rows that weir makes stay the same. Otherwise
// those that are there would be taken for right, and everything that reads them would be wrong.
func TestDeclaredNamesOfMadeRows(t *testing.T) {
	texts := map[string][]byte{"declaring": []byte(declaring)}
	for _, name := range model.Builtin() {
		b, err := models.Files.ReadFile(name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		texts[name] = b
	}
	files, err := filepath.Glob("../../model/testdata/good/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if texts[filepath.Base(file)], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	compared, differ := map[string]int{}, map[string]int{}
	for name, text := range texts {
		file, err := model.Parse(name, text)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range file.Entities {
			if len(e.MadeBy) == 0 && e.Group == nil {
				continue
			}
			was, err := edited(t, name, text, e.Name, func(map[string]any) {})
			if err != nil {
				t.Fatal(err)
			}
			before := makes(t, was)
			redeclared(t, e, name, text, func(edit string, is *model.Model) {
				for of, now := range makes(t, is) {
					had := before[of]
					same := slices.Equal(had.rows, now.rows)
					if compared[name]++; !same {
						differ[name]++
					}
					if had.hash == now.hash && !same {
						t.Errorf("%s: %s: %s keeps its definition and makes\n%s\nwhich was\n%s", name, edit, of, strings.Join(now.rows, "\n"), strings.Join(had.rows, "\n"))
					}
				}
			})
		}
	}
	if t.Logf("compared %v, of which differ %v", compared, differ); compared["declaring"] < 100 || differ["declaring"] < 20 || differ["wardrobe"] == 0 || differ["watchlists"] == 0 {
		t.Errorf("compared only %v, of which differ %v", compared, differ)
	}
}

// redeclared calls try with the models in which the entity declares one attribute less, or one more
// with a name that its keys have.
func redeclared(t *testing.T, e *model.Entity, file string, text []byte, try func(edit string, m *model.Model)) {
	t.Helper()
	for _, a := range e.Attributes {
		if m, err := edited(t, file, text, e.Name, func(declared map[string]any) { delete(declared, a.Name) }); err == nil {
			try(fmt.Sprintf("%s.%s is not declared", e.Name, a.Name), m)
		}
	}
	var names []string
	for _, k := range e.Keys {
		names = append(append(names, k.Attr.Name), k.Template.Names()...)
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if e.Attribute(name) != nil {
			continue
		}
		for _, typ := range []string{"any", "string", "number", "boolean"} {
			if m, err := edited(t, file, text, e.Name, func(declared map[string]any) { declared[name] = typ }); err == nil {
				try(fmt.Sprintf("%s.%s is a declared %s", e.Name, name, typ), m)
			}
		}
	}
}

// edited returns the model of a file with other attributes of an entity. What has no order in the file
// is sorted.
func edited(t *testing.T, file string, text []byte, entity string, change func(declared map[string]any)) (*model.Model, error) {
	t.Helper()
	var doc map[string]any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	e := doc["entities"].(map[string]any)[entity].(map[string]any)
	declared, _ := e["attributes"].(map[string]any)
	if declared == nil {
		declared = map[string]any{}
	}
	change(declared)
	delete(e, "attributes")
	if len(declared) > 0 {
		e["attributes"] = declared
	}
	b, err := yaml.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return model.Parse(file, b)
}

// madeRows is what a derivation makes from sample rows, and the hash of its definition.
type madeRows struct {
	hash string
	rows []string
}

// makes returns what each rule and group of a model makes, by derivation.
func makes(t *testing.T, m *model.Model) map[string]madeRows {
	t.Helper()
	out := map[string]madeRows{}
	for _, d := range m.Derivations() {
		var rows []string
		for _, r := range m.Rows {
			if r.Name == d.Name {
				rows = append(rows, ruleMakes(r)...)
			}
		}
		for _, g := range m.Groups {
			if g.Rows.Name == d.Name {
				rows = append(rows, groupMakes(g)...)
			}
		}
		if len(rows) > 0 {
			out[d.Name] = madeRows{d.Hash, rows}
		}
	}
	for _, r := range m.Rows {
		if len(out[r.Name].rows) == 0 {
			t.Errorf("%s makes nothing of the sample rows", r.Name)
		}
	}
	return out
}

// ruleMakes returns what a rule makes from sample rows of its source.
func ruleMakes(rule *model.RowRule) (out []string) {
	for _, row := range samples(rule.Source) {
		c := projections.Change{Table: rule.Source.Table, Row: store.Ref{Table: rule.Source.Table.Name}, Is: rule.Source, New: row}
		c.Row.Key, _ = rule.Source.Table.KeyOf(row)
		if rule.Subscribers == nil {
			if p, ok := projections.MakeRow(&c, rule, row); ok && rule.Input.Uses(row) {
				out = append(out, madeText(p, len(p.Follows)))
			}
			for _, p := range copies.PutsOf(&c) {
				if p.Rule == rule {
					out = append(out, madeText(p, "put"))
				}
			}
			continue
		}
		for _, of := range samples(rule.Subscribers.Of) {
			p, ok := projections.BuildRow(rule, func(a *model.Assign) value.Value {
				if a.Expr.Subscriber != nil {
					return a.Expr.Subscriber.Get(of)
				}
				return projections.EvaluateExpr(&c, &a.Expr, row)
			}, func(a *model.Assign) value.Value {
				if a.Expr.Subscriber != nil {
					return a.Expr.Subscriber.Raw(of)
				}
				return a.Expr.Field.Raw(row)
			})
			if ok {
				out = append(out, madeText(p, "told"))
			}
		}
	}
	return out
}

// madeText is what a rule makes, as text.
func madeText(p projections.Put, more any) string {
	return fmt.Sprint(owntable.RowText(p.Row), " ", p.Unclear, " ", string(value.AppendTypedItem(nil, p.Image)), " ", more)
}

// groupMakes returns the rows of groups with sample values.
func groupMakes(g *model.Group) (out []string) {
	for i := range words {
		key, ok := g.Into.TypedKey(func(string) value.Value { return value.OfString(words[i]) })
		if !ok {
			continue
		}
		if row, ok := g.Row(key); ok {
			out = append(out, owntable.RowText(store.Ref{Table: g.Into.Table.Name, Key: key})+string(value.AppendTypedItem(nil, row)))
		}
	}
	return out
}

// words are values of texts: with and without separators of keys, and those that read as other types.
var words = []string{"plain", "with#separator", "7", "true", "with%23escape"}

// samples returns rows of an entity: with each of the words in all its texts, whole and without each
// of its attributes. All pass the entity's where.
func samples(e *model.Entity) (out []value.Item) {
	for i := range words {
		of := func(name string) value.Value {
			for j := range e.Where {
				if w := &e.Where[j]; w.Field.Name == name && len(w.Listed()) > 0 {
					return w.Listed()[0]
				}
			}
			typ := e.Field(name).Type
			if a := e.Attribute(name); a != nil && a.Type == model.TypeTime {
				typ = a.Type // also in a key
			}
			switch typ {
			case model.TypeNumber:
				return value.OfInt(4)
			case model.TypeTime:
				return value.OfString("2026-01-02T03:04:05Z")
			}
			if a := e.Attribute(name); a != nil && len(a.Enum) > 0 {
				return value.OfString(a.Enum[i%len(a.Enum)])
			}
			return value.OfString(words[i])
		}
		key, ok := e.TypedKey(of)
		if !ok {
			continue
		}
		names := e.DerivedAttributes()
		for _, a := range e.Attributes {
			names = append(names, a.Name)
		}
		for j := range e.Where {
			if e.Where[j].Field.Key == nil {
				names = append(names, e.Where[j].Field.Name)
			}
		}
		for _, without := range append([]string{""}, names...) {
			row := e.Table.Item(key)
			for _, name := range names {
				if !row.Has(name) && name != without {
					row = row.With(value.Attr{Name: name, Value: of(name)})
				}
			}
			if row = projections.WithKeys(e, row); e.Table.Classify(row) == e {
				out = append(out, row)
			}
		}
	}
	return out
}
