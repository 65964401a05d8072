package scratch

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// Parse returns the addresses of the rows that target may mean. A row may be named in these
// ways:
//
//	Album:id=a1                     by entity and the names in its key,
//	Album:a1                        or only their values, in the order of the key;
//	gallery "ALBUM#a1", "METADATA"  as messages print it, or verify:
//	gallery {"PK":"ALBUM#a1","SK":"METADATA"}
//
// Separate the parts by commas. In a value, write a comma as %2C, a percent sign as %25 and
// an equals sign as %3D. Write a binary in base64. Values are the application's own. A key
// may hold them unescaped or escaped, so Parse returns an address for each spelling.
func Parse(m *model.Model, target string) ([]Address, error) {
	if e, key, ok := parsePrinted(m, target); ok {
		return []Address{{Entity: e, Row: store.Ref{Table: e.Table.Name, Key: key}}}, nil
	}
	name, rest, _ := strings.Cut(target, ":")
	e := m.Entity(name)
	if e == nil {
		return nil, fmt.Errorf("%q: there is no entity %q in model %s, which has %s; write %s",
			target, name, m.Name, strings.Join(seq.Map(m.Entities, func(e *model.Entity) string { return e.Name }), ", "), keyPattern(m.Entities[0]))
	}
	named, names := map[string]value.Value{}, keyNames(e)
	for i, part := range strings.Split(rest, ",") {
		k, v, ok := strings.Cut(part, "=")
		if i < len(names) && (!ok || e.Field(names[i]).Type == model.TypeBinary && !slices.Contains(names, k)) {
			k, v = names[i], part // base64 may end with equals signs
		}
		text, err := url.PathUnescape(v)
		if err != nil {
			return nil, fmt.Errorf("%q: %w; a percent sign in a value is written %%25", target, err)
		}
		if !slices.Contains(names, k) {
			return nil, fmt.Errorf("%q: %q is no part of the key; write %s", target, part, keyPattern(e))
		}
		if named[k], err = parseTyped(e, k, text); err != nil {
			return nil, fmt.Errorf("%q: %w", target, err)
		}
	}
	get := func(name string) value.Value { return named[name] }
	keys := e.KeysOf(get)
	if len(keys) == 0 {
		return nil, fmt.Errorf("%q names no row; write %s", target, keyPattern(e))
	}
	out := make([]Address, len(keys))
	for i, key := range keys {
		out[i] = Address{Entity: e, Row: store.Ref{Table: e.Table.Name, Key: key}}
		if len(keys) > 1 {
			out[i].says = func(row value.Item) bool { return e.Says(row, get) }
		}
	}
	return out, nil
}

// Address is a row that a user may mean.
type Address struct {
	Entity *model.Entity
	Row    store.Ref
	says   func(value.Item) bool // nil: by its key, whatever it holds
}

// Is reports whether a row with the address's key really is the row that the user means.
func (a *Address) Is(row value.Item) bool { return a.says == nil || a.says(row) }

// parsePrinted parses a table and a key in the form in which messages print them. If several
// entities can have such a key, it returns the one that has derived attributes.
func parsePrinted(m *model.Model, target string) (e *model.Entity, key store.Key, ok bool) {
	table, rest, _ := strings.Cut(target, " ")
	var parts []any
	d := json.NewDecoder(strings.NewReader("[" + rest + "]"))
	d.UseNumber()
	if d.Decode(&parts) != nil || len(parts) == 0 || len(parts) > 2 {
		return nil, key, false
	}
	for _, one := range m.Entities {
		if one.Table.Name != table {
			continue
		}
		schema := one.Table.Key
		var k store.Key
		if named, ok := parts[0].(map[string]any); ok {
			k = store.Key{Partition: keyValue(schema.Partition, named[schema.Partition.Name]), Sort: keyValue(schema.Sort, named[schema.Sort.Name])}
		} else if k.Partition = keyValue(schema.Partition, parts[0]); len(parts) == 2 {
			k.Sort = keyValue(schema.Sort, parts[1])
		}
		if _, whole := one.Table.KeyOf(one.Table.Item(k)); !whole || !canMake(one, k) {
			continue
		}
		if !ok || len(derivedAttributes(e)) == 0 {
			e, key, ok = one, k, true
		}
	}
	return e, key, ok
}

// canMake reports whether an entity's templates can make the key.
func canMake(e *model.Entity, key store.Key) bool {
	row := e.Table.Item(key)
	for _, k := range e.PrimaryKey() {
		if text := row.Get(k.Attr.Name); text.Kind() == value.String && !k.Template.Match(text.Text(), make([]string, len(k.Template.Names()))) {
			return false
		}
	}
	return e.Takes(key)
}

// keyValue makes a key's value from one of JSON. It is missing where the text is no number, or no
// base64, so that no row is found by it.
func keyValue(k store.KeyAttr, v any) value.Value {
	if v == nil {
		return value.Value{}
	}
	is, err := value.ParseAs(k.Type, fmt.Sprint(v))
	if err != nil {
		return value.Value{}
	}
	return is
}

// parseTyped converts a value that a user typed into the field's type.
func parseTyped(e *model.Entity, name, text string) (value.Value, error) {
	switch e.Field(name).Type {
	case model.TypeNumber:
		if v, err := value.ParseNumber(text); err == nil {
			return v, nil
		}
	case model.TypeBinary:
		v, err := value.ParseAs(value.Binary, text)
		if err != nil {
			return v, fmt.Errorf("%s is a binary, which is written in base64: %w", name, err)
		}
		return v, nil
	}
	return value.OfString(text), nil
}

// keyNames returns the names that make up an entity's key, in order.
func keyNames(e *model.Entity) []string {
	var names []string
	for _, k := range e.PrimaryKey() {
		for _, n := range k.Template.Names() {
			if n != model.Leaf && !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	return names
}

// keyPattern returns a pattern for naming rows of the entity, for messages.
func keyPattern(e *model.Entity) string {
	return e.Name + ":" + strings.Join(keyNames(e), "=…,") + "=…"
}

// Known returns the rows of the addresses that a user may mean. It leaves out keys under
// which the store holds a different row. A single address is returned without a read.
func Known(ctx context.Context, db store.Store, all []Address) (out []store.Ref, err error) {
	refs := seq.Map(all, func(a Address) store.Ref { return a.Row })
	if len(refs) == 1 {
		return refs, nil
	}
	rows, err := db.Get(ctx, refs)
	if err != nil {
		return nil, err
	}
	for i, row := range rows {
		if row == nil || all[i].Is(row) {
			out = append(out, refs[i])
		}
	}
	return out, nil
}
