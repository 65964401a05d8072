// This file writes a model from rows of a table: a first one for a person to go on with. It tells entities apart by an
// attribute that names their kind, or by the form of their keys; it reads templates of keys from the parts that the rows of an entity
// have in common, and types from their values.

package sample

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// draftKinds are attributes that name the kind of a row in many tables.
var draftKinds = []string{"EntityType", "entityType", "entity_type", "__edb_e__", "__typename", "_et", "type", "Type", "kind", "Kind", "entity", "Entity", "recordType"}

// entity is the rows of one kind.
type entity struct {
	name      string
	kind      string // the value of the attribute of kinds, "" for none
	rows      []value.Item
	templates []template // of the table's key, and then of its indexes
	names     []string   // in the table's key
}

// template is how a key attribute is made.
type template struct {
	attr, text string
	names      []string
	table      bool // it is of the table's key
	fixed      bool // it has a part that is the same for all rows
}

// Model returns the text of a model of a table with these rows, of which there is at least one.
func Model(name string, t *store.Table, rows []value.Item) string {
	d := &drafted{table: t, kind: kindOf(rows)}
	groups, shapes := map[string]*entity{}, map[string]bool{}
	for _, row := range rows {
		if d.isKind(row) {
			shapes[d.shape(row)] = true
		}
	}
	for _, row := range rows {
		kind := ""
		if d.isKind(row) {
			kind = row.Get(d.kind).Text()
		} else if shapes[d.shape(row)] {
			continue // nothing tells it from rows of a kind but that it lacks it
		}
		id := kind + " " + d.shape(row)
		e := groups[id]
		if e == nil {
			e = &entity{kind: kind, name: d.nameOf(cmp.Or(kind, strings.Trim(d.shape(row), "# "), strings.TrimSuffix(t.Name, "s")))}
			groups[id] = e
			d.entities = append(d.entities, e)
		}
		e.rows = append(e.rows, row)
	}
	for _, e := range d.entities {
		d.findKeys(e)
	}
	slices.SortStableFunc(d.entities, func(a, b *entity) int {
		if a.isFixed() != b.isFixed() {
			if a.isFixed() {
				return -1
			}
			return 1
		}
		return len(b.rows) - len(a.rows)
	})
	forms := map[string]bool{}
	d.entities = slices.DeleteFunc(d.entities, func(e *entity) bool {
		form := e.form()
		if !forms[form] && (e.isFixed() || len(forms) == 0) {
			forms[form] = true
			return false
		}
		d.others = append(d.others, e)
		return true
	})
	return d.writeModel(name)
}

// drafted is a draft on its way.
type drafted struct {
	table    *store.Table
	kind     string // the attribute that names the kind of a row, "" for none
	entities []*entity
	others   []*entity // whose keys have nothing that tells them from those of entities
}

// form is the templates of the table's key without names: two entities of one form cannot be in one model.
func (e *entity) form() (out string) {
	for _, t := range e.templates {
		if t.table {
			out += t.attr + names.ReplaceAllLiteralString(t.text, "{}") + " "
		}
	}
	return out
}

var names = regexp.MustCompile(`\{[^}]*\}`)

// isFixed reports whether something in the table's key is the same for all rows.
func (e *entity) isFixed() bool {
	return slices.ContainsFunc(e.templates, func(t template) bool { return t.table && t.fixed })
}

// kindOf is the attribute that names the kind of most rows: one of the usual names, with few values.
func kindOf(rows []value.Item) string {
	for _, name := range draftKinds {
		values, have := map[string]bool{}, 0
		for _, row := range rows {
			if v := row.Get(name); v.Kind() == value.String && v.Text() != "" {
				values[v.Text()] = true
				have++
			}
		}
		if 10*have >= 8*len(rows) && (len(values) <= 3 || len(values) <= min(50, len(rows)/2)) {
			return name
		}
	}
	return ""
}

// isKind reports whether a row names its kind.
func (d *drafted) isKind(row value.Item) bool {
	v := row.Get(d.kind)
	return v.Kind() == value.String && v.Text() != ""
}

// shape is the form of a row's key: its beginning, if that looks like a constant, and of how many parts it is.
func (d *drafted) shape(row value.Item) string {
	var out []string
	for _, key := range []string{d.table.Key.Partition.Name, d.table.Key.Sort.Name} {
		p := parts(row.Get(key))
		if len(p) > 0 && constant.MatchString(p[0]) {
			out = append(out, p[0])
		}
		out = append(out, strings.Repeat("#", len(p)))
	}
	return strings.Join(out, " ")
}

// constant is a part of a key that looks like one.
var constant = regexp.MustCompile(`^[A-Z][A-Z_-]*$`)

func parts(v value.Value) []string {
	if v.Kind() != value.String {
		return nil
	}
	return strings.Split(v.Text(), "#")
}

// nameOf is a name for an entity, which no other one has.
func (d *drafted) nameOf(text string) string {
	upper, lower := true, strings.ToUpper(text) == text
	name := strings.Map(func(r rune) rune {
		switch {
		case r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r):
			upper = true
			return -1
		case upper:
			upper = false
			return unicode.ToUpper(r)
		case lower:
			return unicode.ToLower(r)
		}
		return r
	}, text)
	if name == "" || unicode.IsDigit(rune(name[0])) {
		name = "Row" + name
	}
	taken := func(name string) bool {
		return slices.ContainsFunc(d.entities, func(e *entity) bool { return e.name == name })
	}
	for base, n := name, 2; taken(name); n++ {
		name = fmt.Sprint(base, n)
	}
	return name
}

// findKeys finds the templates of an entity's keys. A key that all rows have as it is needs none.
func (d *drafted) findKeys(e *entity) {
	for i, k := range d.table.KeyAttrs() {
		ofTable := k.Name == d.table.Key.Partition.Name || k.Name == d.table.Key.Sort.Name
		t, ok := e.findTemplate(k.Name, d.table.KeyAttrs())
		if !ok {
			t = template{attr: k.Name, names: []string{k.Name}} // an attribute
			if !ofTable {
				continue
			}
		}
		if i == 0 || ofTable {
			t.table = true
			for _, name := range t.names {
				if !slices.Contains(e.names, name) {
					e.names = append(e.names, name)
				}
			}
		}
		if t.text != "" {
			e.templates = append(e.templates, t)
		}
	}
}

// findTemplate finds the parts that the rows have in common in a key attribute. ok is false if it is not made of parts.
func (e *entity) findTemplate(attr string, keys []store.KeyAttr) (t template, ok bool) {
	t.attr = attr
	first := parts(e.rows[0].Get(attr))
	for _, row := range e.rows {
		if p := parts(row.Get(attr)); len(p) == 0 || len(p) != len(first) {
			return t, false
		}
	}
	literals := 0
	for i, part := range first {
		same := !slices.ContainsFunc(e.rows, func(row value.Item) bool { return parts(row.Get(attr))[i] != part })
		if same && (constant.MatchString(part) || len(e.rows) > 2 && strings.ToLower(part) == part && i == 0) && part != "" && !strings.ContainsAny(part, "{}[]") {
			literals++
			t.text += "#" + part
			continue
		}
		name := e.field(attr, i, keys)
		if name == "" {
			name = "id"
			if i > 0 && constant.MatchString(first[i-1]) {
				name = camel(first[i-1]) + "Id"
			}
			if name == "id" && i > 0 || slices.Contains(t.names, name) || !plain.MatchString(name) {
				name = fmt.Sprintf("%s%d", strings.ToLower(attr), i+1)
			}
		}
		t.names = append(t.names, name)
		t.text += "#{" + name + "}"
	}
	t.text = strings.TrimPrefix(t.text, "#")
	t.fixed = literals > 0
	return t, len(first) > 1 || t.fixed
}

var plain = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)

// camel is a constant of a key as the beginning of a name: ALBUM_PAGE is albumPage.
func camel(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	for i := range words {
		if i > 0 {
			words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
		}
	}
	return strings.Join(words, "")
}

// field is the attribute that has, in all rows, the text of a part of a key; "" for none. One that is a key itself comes last.
func (e *entity) field(attr string, part int, keys []store.KeyAttr) string {
	attrs := slices.Clone(e.rows[0])
	slices.SortStableFunc(attrs, func(a, b value.Attr) int {
		isKey := func(a value.Attr) int {
			return slices.IndexFunc(keys, func(k store.KeyAttr) bool { return k.Name == a.Name })
		}
		return isKey(a) - isKey(b)
	})
	for _, a := range attrs {
		if a.Name != attr && plain.MatchString(a.Name) && !slices.ContainsFunc(e.rows, func(row value.Item) bool {
			v := row.Get(a.Name)
			return v.Kind() != value.String || v.Text() != parts(row.Get(attr))[part]
		}) {
			return a.Name
		}
	}
	return ""
}

// typeOf is the type of an attribute by its values, with a ! if all rows have it.
func typeOf(rows []value.Item, name string) string {
	types, all := map[string]bool{}, "!"
	for _, row := range rows {
		switch v := row.Get(name); v.Kind() {
		case value.Missing, value.Null:
			all = ""
		case value.String:
			types[textType(v.Text())] = true
		case value.Number:
			types["number"] = true
		case value.Bool:
			types["boolean"] = true
		case value.Binary:
			types["binary"] = true
		case value.List:
			types["list"] = true
		case value.Map:
			types["map"] = true
		case value.StringSet:
			types["strings"] = true
		case value.NumberSet:
			types["numbers"] = true
		default:
			types["any"] = true
		}
	}
	switch {
	case len(types) == 1:
		for t := range types {
			return t + all
		}
	case len(types) == 2 && types["string"] && (types["time"] || types["flag"]):
		return "string" + all
	}
	return "any" + all
}

func textType(s string) string {
	if _, err := time.Parse(time.RFC3339, s); err == nil {
		return "time"
	}
	if s == "true" || s == "false" {
		return "flag"
	}
	return "string"
}

// writeModel writes the model.
func (d *drafted) writeModel(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# A draft by rows of the table. Look at names and types, and choose what to derive.\nmodel: %s\n\ntables:\n  %q:\n    key: %s\n", name, d.table.Name, draftKeyText(d.table.Key))
	if d.table.TTL != "" {
		fmt.Fprintf(&b, "    ttl: %q\n", d.table.TTL)
	}
	for i, ix := range d.table.Indexes {
		if i == 0 {
			b.WriteString("    indexes:\n")
		}
		more := ""
		if ix.Local {
			more += ", local: true"
		}
		if ix.KeysOnly {
			more += ", projection: keys"
		}
		fmt.Fprintf(&b, "      %q: {key: %s%s}\n", ix.Name, draftKeyText(ix.Key), more)
	}
	b.WriteString("\nentities:\n")
	for _, e := range d.entities {
		fmt.Fprintf(&b, "  %s:\n", word(e.name))
		if e.kind != "" {
			fmt.Fprintf(&b, "    where: {%q: %q}\n", d.kind, e.kind)
		}
		if len(e.templates) > 0 {
			fmt.Fprintf(&b, "    key: {%s}\n", strings.Join(seq.Map(e.templates, func(t template) string { return fmt.Sprintf("%q: %q", t.attr, t.text) }), ", "))
		}
		b.WriteString("    attributes:\n")
		if attrs := d.attributes(e); len(attrs) > 0 {
			b.WriteString(strings.Join(attrs, ""))
		} else {
			b.WriteString("      {}\n")
		}
	}
	for _, e := range d.others {
		fmt.Fprintf(&b, "  # %d rows more, such as %s\n", len(e.rows), breaks.Replace(string(value.AppendPlainItem(nil, d.key(e.rows[0])))))
	}
	b.WriteString(d.derivations())
	b.WriteString("\nqueries:\n")
	for _, e := range d.entities {
		fmt.Fprintf(&b, "  %s: {get: %s, with: [%s]}\n", word(kebab(e.name)), word(e.name), strings.Join(seq.Map(e.names, word), ", "))
	}
	return b.String()
}

// word is a text as YAML reads it as a text.
func word(text string) string {
	if words.MatchString(text) && !slices.Contains([]string{"null", "true", "false", "yes", "no", "on", "off", "y", "n"}, strings.ToLower(text)) {
		return text
	}
	return fmt.Sprintf("%q", text)
}

// breaks are ends of lines to YAML, and not to JSON.
var breaks = strings.NewReplacer("\u0085", " ", "\u2028", " ", "\u2029", " ")

var words = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// key is the key of a row.
func (d *drafted) key(row value.Item) value.Item {
	key, _ := d.table.KeyOf(row)
	return d.table.Item(key)
}

func draftKeyText(k store.KeySchema) string {
	out := []string{}
	for _, a := range []store.KeyAttr{k.Partition, k.Sort} {
		switch {
		case a.Name == "":
		case a.Type == value.Number:
			out = append(out, fmt.Sprintf("{%q: number}", a.Name))
		case a.Type == value.Binary:
			out = append(out, fmt.Sprintf("{%q: binary}", a.Name))
		default:
			out = append(out, fmt.Sprintf("%q", a.Name))
		}
	}
	return "[" + strings.Join(out, ", ") + "]"
}

// attributes are the attributes of an entity's rows, but for keys that are made, the kind, and those that weir writes.
func (d *drafted) attributes(e *entity) (out []string) {
	var names []string
	for _, row := range e.rows {
		for _, a := range row {
			made := slices.ContainsFunc(e.templates, func(t template) bool { return t.attr == a.Name })
			if !made && a.Name != d.kind && !owntable.IsOurs(a.Name) && !slices.Contains(names, a.Name) {
				names = append(names, a.Name)
			}
		}
	}
	slices.Sort(names)
	return seq.Map(names, func(name string) string {
		if strings.ContainsAny(name, "{}[]=?$") || strings.ContainsFunc(name, unicode.IsSpace) {
			return fmt.Sprintf("      # %q is a name that a model cannot have\n", name)
		}
		return fmt.Sprintf("      %q: %s\n", name, typeOf(e.rows, name))
	})
}

// derivations are suggestions: a count of the rows whose key has the key of another entity.
func (d *drafted) derivations() string {
	var lines []string
	for _, parent := range d.entities {
		for _, child := range d.entities {
			if parent != child && len(child.names) > len(parent.names) && !slices.ContainsFunc(parent.names, func(n string) bool { return !slices.Contains(child.names, n) }) {
				lines = append(lines, fmt.Sprintf("#   %s.%sCount: {count: %s}\n", parent.name, camelFirst(child.name), child.name))
			}
		}
	}
	if len(lines) == 0 {
		return "\n# derive:   # docs/guide/how-to.md has what can be derived\n"
	}
	return "\n# derive:   # such as these\n" + strings.Join(lines, "")
}

func camelFirst(name string) string { return strings.ToLower(name[:1]) + name[1:] }

// kebab is the name of an entity as that of a query.
func kebab(name string) string {
	var b strings.Builder
	for i, r := range name {
		if unicode.IsUpper(r) && i > 0 && !unicode.IsUpper(rune(name[i-1])) {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
