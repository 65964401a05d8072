package ingest

import (
	"slices"
	"strings"
	"time"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// checked is a command that is valid in itself. Whether it fits the rows in the table
// is left to its plan.
type checked struct {
	*form
	Op      Op
	IfMatch string
	secret  []byte // keys revisions
	key     string // the idempotency key, "" for none
	hash    string // of the command, as it was given
	ref     store.Ref
	name    string                 // of the row: nameOf(ref)
	given   fields                 // as rows hold them; Null for a field to remove
	at      map[string]string      // for a field given within an object, its pointer
	echo    []value.Attr           // computed attributes given too; each must equal the computed value
	fresh   map[string]value.Value // the value of a new row for a field that is not given
}

// fields are values by name. They are few, and in no order.
type fields []value.Attr

// find returns the value of a name, and whether it has one.
func (f fields) find(name string) (value.Value, bool) {
	for i := range f {
		if f[i].Name == name {
			return f[i].Value, true
		}
	}
	return value.Value{}, false
}

// get returns the value of a name, Missing for none.
func (f fields) get(name string) value.Value {
	v, _ := f.find(name)
	return v
}

// setField gives a name a value, in the place of the one that it has.
func (f *fields) setField(name string, v value.Value) {
	for i := range *f {
		if (*f)[i].Name == name {
			(*f)[i].Value = v
			return
		}
	}
	*f = append(*f, value.Attr{Name: name, Value: v})
}

// env is the outside of a check: the time, and a source of unique names.
type env struct {
	now   time.Time
	newID func() string
}

// checkItem reads a command's item. A refusal lists all its problems, not only the first.
// It reads no row. Its result has every value in the form that rows hold; the command's own
// item stays as it is.
func (f *form) checkItem(c Command, from env) (*checked, *Refusal) {
	out := &checked{form: f, Op: c.Op, IfMatch: c.IfMatch, given: make(fields, 0, len(c.Item))}
	var r Refusal
	for _, a := range out.flattenItem(c.Item, &r) {
		if reason := out.takeMember(a, &r); reason != "" {
			r.addProblem(out.pointerTo(a.Name), reason)
		}
	}
	out.makeNew(from)
	out.takeKey(c.IdempotencyKey, &r)
	if out.key != "" {
		out.hash = owntable.Hash(string(value.AppendItem([]byte(string(c.Op)+" "+c.Entity+" "), c.Item)))
	}
	out.checkRequired(&r)
	if len(r.Problems) == 0 {
		out.makeKey(&r)
	}
	if len(r.Problems) > 0 {
		return nil, &r
	}
	return out, nil
}

// pointerTo is the pointer to a field in the item, or to the place where it should be.
func (c *checked) pointerTo(name string) string {
	if at, ok := c.at[name]; ok {
		return at
	}
	if member, rest := c.MemberOf(name); member != "" {
		return Pointer(member, rest)
	}
	return Pointer(name)
}

// makeNew makes the values that a new row gets by itself. Only a create gets a
// generated name in its key: every other command names an existing row.
func (c *checked) makeNew(from env) {
	if c.Op != Create && c.Op != Put || from.newID == nil || len(c.New) == 0 {
		return
	}
	c.fresh = map[string]value.Value{}
	for _, n := range c.New {
		if v := c.given.get(n.Name); !v.IsMissing() {
			continue
		}
		v := timeStamp(from.now)
		if n.Made == model.NewID {
			v = value.OfString(from.newID())
		}
		switch {
		case !slices.Contains(c.named, n.Name):
			c.fresh[n.Name] = v
		case c.Op == Create:
			c.given.setField(n.Name, v)
		}
	}
}

// timeStamp formats a time that weir writes into a row. As text, these sort by time.
func timeStamp(t time.Time) value.Value {
	return value.OfString(t.UTC().Format("2006-01-02T15:04:05.000Z"))
}

// takeMember reads one member of the item. The reason is its fault, "" for
// nothing.
func (c *checked) takeMember(m value.Attr, r *Refusal) (reason string) {
	a, inKey := c.attrs[m.Name], slices.Contains(c.named, m.Name)
	switch {
	case c.isDerived(m.Name):
		return "is derived: weir keeps it, leave it out"
	case c.made[m.Name] || a != nil && a.Computed != nil && !inKey:
		c.echo = append(c.echo, m)
		return ""
	case c.HasFormula(m.Name):
		return "is computed from other fields: leave it out"
	case c.Op == Delete && !inKey:
		return "is not in the key, which is all that a delete goes by"
	case a == nil && !inKey && !slices.Contains(c.only, m.Name):
		if len(r.Problems) >= maxSentences { // the name that is meant costs too much to look for in each of many
			return "is no field of " + c.Name
		}
		return "is no field of " + c.Name + model.Meant(m.Name, c.fields)
	case m.Value.Kind() == value.Null:
		return c.takeNull(m.Name, a, inKey)
	case a == nil:
		a = &model.Attribute{Name: m.Name, Type: c.Field(m.Name).Type}
	}
	v, reason := convertValue(a, m.Value)
	if reason == "" && value.Scalar(v) == "" && v.Kind() == value.String {
		reason = c.whyNotEmpty(m.Name, inKey)
	}
	c.given.setField(m.Name, v)
	return reason
}

// takeNull takes a field given as null. For an update it removes the field; for other
// operations it means the same as leaving the field out.
func (c *checked) takeNull(name string, a *model.Attribute, inKey bool) string {
	if c.Op != Update {
		return ""
	}
	if inKey || a != nil && a.Required {
		return "is required and cannot be taken away"
	}
	c.given.setField(name, value.OfNull())
	return ""
}

// whyNotEmpty is the reason why a field cannot be an empty text, "" if it can: DynamoDB takes none as a key.
func (c *checked) whyNotEmpty(name string, inKey bool) string {
	switch ix := c.indexed[name]; {
	case inKey:
		return "is in the key and cannot be empty"
	case len(ix) > 0:
		return "cannot be empty: it is a key of index " + strings.Join(ix, ", ")
	}
	return ""
}

// checkRequired reports the fields that are missing, after it has filled in defaults. A put
// may leave out a hidden attribute, because no caller can read its value back.
func (c *checked) checkRequired(r *Refusal) {
	missing := func(name string) {
		if _, wrong := c.given.find(name); !wrong && !slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Pointer == c.pointerTo(name) }) {
			r.addProblem(c.pointerTo(name), "is required")
		}
	}
	for _, name := range c.keys {
		if _, ok := c.given.find(name); ok {
			continue
		}
		if a := c.attrs[name]; a == nil || a.Default.IsMissing() {
			missing(name)
		} else {
			c.given.setField(name, a.Default)
		}
	}
	if c.Op != Create && c.Op != Put {
		return
	}
	for _, a := range c.Attributes {
		if _, made := c.fresh[a.Name]; made {
			continue
		}
		if a.Required && a.Default.IsMissing() && !slices.Contains(c.keys, a.Name) && !(a.Hidden && c.Op == Put) {
			missing(a.Name)
		}
	}
}

// makeKey makes the row's key.
// A key is made of the command's and of computed values; nothing is read from a row.
func (c *checked) makeKey(r *Refusal) {
	c.ref.Table = c.Table.Name
	for i, k := range c.PrimaryKey() {
		v, ok := k.BuildTyped(c.given.get)
		if !ok {
			r.addProblem("", "makes no key: "+k.Template.String())
			return
		}
		if c.ref.Key.Sort = v; i == 0 {
			c.ref.Key.Partition = v
		}
	}
	if c.Table.Key.Sort.Name == "" {
		c.ref.Key.Sort = value.Value{}
	}
	c.name = nameOf(c.ref)
	if k := c.ref.Key; len(k.Partition.Text())+len(k.Sort.Text()) > store.MaxSortBytes {
		c.checkKeyLengths(r, c.Table.Item(k))
	}
}

// checkKeyLengths reports the keys that are longer than a table allows.
// The pointer is that of the longest value in the key, which the caller can make shorter. Limits
// are those of DynamoDB: 2,048 and 1,024 bytes.
func (c *checked) checkKeyLengths(r *Refusal, row value.Item) {
	say := func(k store.KeyAttr, limit int) {
		if n := len(row.Get(k.Name).Text()); k.Name != "" && row.Get(k.Name).Kind() != value.Number && n > limit {
			at, names := "", []string{k.Name}
			if t := c.KeyTemplate(k.Name); t != nil {
				names = t.Template.Names()
			}
			if len(names) > 0 {
				at = c.pointerTo(c.longestName(row, names))
			}
			r.addProblem(at, "makes the key "+k.Name+" "+formatNumber(n)+" bytes long, "+formatNumber(limit)+" are possible")
		}
	}
	say(c.Table.Key.Partition, store.MaxPartitionBytes)
	say(c.Table.Key.Sort, store.MaxSortBytes)
	for _, ix := range c.Table.Indexes {
		if !ix.Local {
			say(ix.Key.Partition, store.MaxPartitionBytes)
		}
		say(ix.Key.Sort, store.MaxSortBytes)
	}
}
