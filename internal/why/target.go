package why

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// Parse finds the rows that a person may mean, in a form that New takes. A row may be named
//
//	Album:id=a1                     by entity and the names in its key,
//	Album:a1                        or only their values, in the order of the key;
//	gallery "ALBUM#a1", "METADATA"  as messages print it, or verify:
//	gallery {"PK":"ALBUM#a1","SK":"METADATA"}
//
// Names and values have commas between them; a comma in a value is written %2C, a
// percent sign %25, an equals sign %3D. A binary is written in base64. Values are the
// application's own, which a key may hold as they are or escaped: there is an address for
// each.
func Parse(m *model.Model, target string) ([]Address, error) {
	if e, key, ok := printed(m, target); ok {
		return []Address{{Entity: e, Row: store.Ref{Table: e.Table.Name, Key: key}}}, nil
	}
	name, rest, _ := strings.Cut(target, ":")
	e := m.Entity(name)
	if e == nil {
		return nil, fmt.Errorf("%q: there is no entity %q in model %s, which has %s; write %s",
			target, name, m.Name, entities(m), form(m.Entities[0]))
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
			return nil, fmt.Errorf("%q: %q is no part of the key; write %s", target, part, form(e))
		}
		if named[k], err = typed(e, k, text); err != nil {
			return nil, fmt.Errorf("%q: %w", target, err)
		}
	}
	get := func(name string) value.Value { return named[name] }
	keys := e.KeysOf(get)
	if len(keys) == 0 {
		return nil, fmt.Errorf("%q names no row; write %s", target, form(e))
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

// Address is a row that a person may mean.
type Address struct {
	Entity *model.Entity
	Row    store.Ref
	says   func(value.Item) bool // nil: by its key, whatever it holds
}

// Is reports whether a row with the address's key is the one that is meant.
func (a *Address) Is(row value.Item) bool { return a.says == nil || a.says(row) }

// printed reads a table and a key as messages print them. The entity is the one, of
// those with such a key, that something is derived on.
func printed(m *model.Model, target string) (e *model.Entity, key store.Key, ok bool) {
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
		if _, whole := one.Table.KeyOf(one.Table.Item(k)); !whole || !made(one, k) {
			continue
		}
		if !ok || len(e.Values)+len(e.Steps)+len(e.MadeBy) == 0 {
			e, key, ok = one, k, true
		}
	}
	return e, key, ok
}

// made reports whether an entity's templates make such keys.
func made(e *model.Entity, key store.Key) bool {
	row := e.Table.Item(key)
	for _, k := range e.PrimaryKey() {
		if text := row.Get(k.Attr.Name); text.Kind() == value.String && !k.Template.Match(text.Text(), make([]string, len(k.Template.Names()))) {
			return false
		}
	}
	return e.Takes(key)
}

func keyValue(k store.KeyAttr, v any) value.Value {
	if v == nil {
		return value.Value{}
	}
	text := fmt.Sprint(v)
	switch k.Type {
	case value.Number:
		n, err := value.ParseNumber(text)
		if err != nil {
			return value.Value{}
		}
		return n
	case value.Binary:
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return value.Value{}
		}
		return value.OfBinary(string(b))
	}
	return value.OfString(text)
}

// typed is a value that somebody typed, as the field has it.
func typed(e *model.Entity, name, text string) (value.Value, error) {
	switch e.Field(name).Type {
	case model.TypeNumber:
		if v, err := value.ParseNumber(text); err == nil {
			return v, nil
		}
	case model.TypeBinary:
		b, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return value.Value{}, fmt.Errorf("%s is a binary, which is written in base64: %w", name, err)
		}
		return value.OfBinary(string(b)), nil
	}
	return value.OfString(text), nil
}

func entities(m *model.Model) string {
	var names []string
	for _, e := range m.Entities {
		names = append(names, e.Name)
	}
	return strings.Join(names, ", ")
}

// keyNames are the names that an entity's key is made of, in its order.
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

// form shows how a row of the entity is named.
func form(e *model.Entity) string {
	return e.Name + ":" + strings.Join(keyNames(e), "=…,") + "=…"
}

// Known are the rows of the addresses, without those that are there and are other rows.
func Known(ctx context.Context, db store.Store, all []Address) (out []store.Ref, err error) {
	refs := make([]store.Ref, len(all))
	for i := range all {
		refs[i] = all[i].Row
	}
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
