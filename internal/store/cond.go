package store

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"weir/internal/seq"
	"weir/internal/value"
)

// This file has the part of the contract that needs no I/O. The embedded driver uses
// it, and the tests of every driver compare results with it.

// Holds reports whether the condition holds for a row; nil is a row that does not
// exist.
func (c Cond) Holds(row value.Item) bool {
	return !slices.ContainsFunc(c, func(clause []Test) bool { return !holdsAny(clause, row) })
}

// holdsAny reports whether one test of a clause holds. An empty clause never holds.
func holdsAny(clause []Test, row value.Item) bool {
	return slices.ContainsFunc(clause, func(t Test) bool { return t.holds(row) })
}

// holds is the meaning of each test, for every store: the embedded one and the simulator's call
// it, and DynamoDB's expressions are held to it by the suite. An order compares values of one
// kind only; DynamoDB too finds a number never below a string.
func (t *Test) holds(row value.Item) bool {
	v := row.Get(t.Attr)
	switch t.Is {
	case Exists:
		return !v.IsMissing()
	case Absent:
		return v.IsMissing()
	case Eq:
		return value.Equal(v, t.Value)
	case Ne:
		return !value.Equal(v, t.Value)
	case Lt:
		return v.Kind() == t.Value.Kind() && value.Compare(v, t.Value) < 0
	case Le:
		return v.Kind() == t.Value.Kind() && value.Compare(v, t.Value) <= 0
	}
	return false
}

// AsRead is the test that an attribute is as it was read: it has the value v, or is
// still missing if v is Missing.
func AsRead(attr string, v value.Value) Test {
	if v.IsMissing() {
		return Test{Attr: attr, Is: Absent}
	}
	return Test{Attr: attr, Is: Eq, Value: v}
}

// Below is the condition that an attribute is absent or less than a value.
func Below(attr string, v value.Value) []Test {
	return []Test{{Attr: attr, Is: Absent}, {Attr: attr, Is: Lt, Value: v}}
}

// NotAbove is the condition that an attribute is absent or at most a value.
func NotAbove(attr string, v value.Value) []Test {
	return []Test{{Attr: attr, Is: Absent}, {Attr: attr, Is: Le, Value: v}}
}

// Assign returns the operation that sets an attribute, or removes it if the value is
// Missing.
func Assign(attr string, v value.Value) Op {
	if v.IsMissing() {
		return Op{Kind: Remove, Attr: attr}
	}
	return Op{Kind: Set, Attr: attr, Value: v}
}

// AssignAll returns the operations that set attributes, or remove those whose value is Missing.
func AssignAll(attrs []value.Attr) []Op {
	return seq.Map(attrs, func(a value.Attr) Op { return Assign(a.Name, a.Value) })
}

// AssignRow returns the operations that set the attributes of a row of the table, but for its key.
func (t *Table) AssignRow(row value.Item) []Op {
	return AssignAll(row.Filter(func(name string) bool { return name != t.Key.Partition.Name && name != t.Key.Sort.Name }))
}

// Validate returns ErrRefused, with the reason, if a write of this table can never
// succeed, whatever its row is. A driver calls it before it changes anything.
func (t *Table) Validate(w *Write) error {
	actions := 0
	for _, given := range [...]bool{w.Put != nil, len(w.Ops) > 0, w.Delete, w.Check} {
		if given {
			actions++
		}
	}
	if actions != 1 {
		return refused("%d of put, ops, delete and check are given, not one", actions)
	}
	if err := t.CheckKey(w.Key); err != nil {
		return err
	}
	if err := w.If.check(); err != nil {
		return err
	}
	if err := w.checkExpressions(); err != nil {
		return err
	}
	if w.Put != nil {
		return t.checkPut(w)
	}
	return t.checkOps(w.Ops)
}

// IsKey reports whether a key's values have the types of the table's key. A row can
// have the key only if CheckKey accepts it, too.
func (t *Table) IsKey(k Key) bool {
	return k.Partition.Kind() == t.Key.Partition.Type && (k.Sort.Kind() == t.Key.Sort.Type || t.Key.Sort.Name == "" && k.Sort.IsMissing())
}

// KeyFault is the reason why no row of this table can have the key, "" if one can.
func (t *Table) KeyFault(k Key) string {
	if err := t.CheckKey(k); err != nil {
		return strings.TrimPrefix(err.Error(), ErrRefused.Error()+": ")
	}
	return ""
}

// CheckKey returns ErrRefused, with the reason, if no row of this table can have the
// key.
func (t *Table) CheckKey(k Key) error {
	if err := checkKeyAttr(t.Key.Partition, k.Partition, MaxPartitionBytes); err != nil {
		return err
	}
	if t.Key.Sort.Name == "" {
		if !k.Sort.IsMissing() {
			return refused("the key has a sort value, the table %s has none", t.Name)
		}
		return nil
	}
	return checkKeyAttr(t.Key.Sort, k.Sort, MaxSortBytes)
}

// checkKeyAttr refuses a value that DynamoDB takes for no key: another type than the schema's,
// an empty text, or one longer than limit bytes.
func checkKeyAttr(a KeyAttr, v value.Value, limit int) error {
	switch {
	case v.Kind() != a.Type:
		return refused("key attribute %s is a %v, it must be a %v", a.Name, v.Kind(), a.Type)
	case v.Kind() == value.Number:
		return nil
	case v.Text() == "":
		return refused("key attribute %s is empty", a.Name)
	case len(v.Text()) > limit:
		return refused("key attribute %s has %d bytes, the limit is %d", a.Name, len(v.Text()), limit)
	}
	return checkText("key attribute ", a.Name, v)
}

// checkText refuses a string that is not UTF-8. DynamoDB has none, and in a request it
// would become another string.
func checkText(what, name string, v value.Value) error {
	if v.Kind() == value.String && !utf8.ValidString(v.Text()) {
		return refused("%s%s is not UTF-8 (%.40q); a binary takes any bytes", what, name, v.Text())
	}
	return nil
}

// checkName refuses the name of an attribute that is not UTF-8, as DynamoDB does.
func checkName(name string) error {
	if !utf8.ValidString(name) {
		return refused("the name of attribute %.40q is not UTF-8", name)
	}
	return nil
}

// check refuses a condition that DynamoDB would, so that a mistake in a program shows on every
// store.
func (c Cond) check() error {
	for _, clause := range c {
		for i := range clause {
			switch k := clause[i].Value.Kind(); clause[i].Is {
			case Exists, Absent:
			case Eq, Ne:
				if k == value.Missing {
					return refused("the condition compares %s with nothing", clause[i].Attr)
				}
			case Lt, Le:
				if k != value.Number && k != value.String && k != value.Binary {
					return refused("the condition orders %s by a %v", clause[i].Attr, k)
				}
			default:
				return refused("the condition asks %s for comparison %d", clause[i].Attr, clause[i].Is)
			}
		}
	}
	return nil
}

// checkPut refuses a row whose key is not the write's, before it could be stored under another.
func (t *Table) checkPut(w *Write) error {
	if k, ok := t.KeyOf(w.Put); !ok || !value.Equal(k.Partition, w.Key.Partition) || !value.Equal(k.Sort, w.Key.Sort) {
		return refused("the row's key attributes are not the write's key")
	}
	return checkItem(w.Put, 0)
}

// checkOps refuses updates that DynamoDB would: of a key attribute, or of one attribute twice.
func (t *Table) checkOps(ops []Op) error {
	for i := range ops {
		op := &ops[i]
		if op.Attr == t.Key.Partition.Name || op.Attr == t.Key.Sort.Name && op.Attr != "" {
			return refused("the update changes key attribute %s", op.Attr)
		}
		for j := range ops[:i] {
			if ops[j].Attr == op.Attr {
				return refused("the update names attribute %s twice", op.Attr)
			}
		}
		if err := op.check(); err != nil {
			return err
		}
	}
	return nil
}

// check refuses an update without a name or a value, and one whose kinds do not fit. It looks
// at the update alone; that an ADD meets a text in the row is known only when it is applied.
func (op *Op) check() error {
	if err := checkName(op.Attr); err != nil {
		return err
	}
	switch from := op.From.Kind(); {
	case op.Attr == "":
		return refused("the update names an attribute \"\"")
	case from != value.Missing && (op.Kind != Add || from != value.Number):
		return refused("the update of %s starts from a %v", op.Attr, from)
	case op.Kind == Set && op.Value.IsMissing():
		return refused("the update sets %s to nothing", op.Attr)
	case op.Kind == Set:
		return checkValue(op.Attr, op.Value, 0)
	case op.Kind == Add && op.Value.Kind() != value.Number:
		return refused("the update adds a %v to %s", op.Value.Kind(), op.Attr)
	case op.Kind > Remove:
		return refused("the update does %d to %s", op.Kind, op.Attr)
	}
	return nil
}

// checkItem refuses items that DynamoDB cannot hold: attributes without a name, empty
// sets, text that is not UTF-8, and nesting beyond its depth.
func checkItem(it value.Item, depth int) error {
	for i := range it {
		if it[i].Name == "" && depth == 0 {
			return refused("an attribute has no name")
		}
		if i > 0 && it[i-1].Name >= it[i].Name {
			return refused("attribute %s comes twice or out of order", it[i].Name)
		}
		if err := checkName(it[i].Name); err != nil {
			return err
		}
		if err := checkValue(it[i].Name, it[i].Value, depth); err != nil {
			return err
		}
	}
	return nil
}

// checkValue refuses values that no DynamoDB item can have, at any depth: empty sets, text that
// is not UTF-8, and nesting of more than value.MaxDepth levels.
func checkValue(name string, v value.Value, depth int) error {
	switch k := v.Kind(); k {
	case value.Missing:
		return refused("attribute %s has no value", name)
	case value.String:
		return checkText("attribute ", name, v)
	case value.StringSet, value.NumberSet, value.BinarySet:
		if v.Len() == 0 {
			return refused("attribute %s is an empty set", name)
		}
		if k == value.StringSet {
			for _, e := range v.Elements() {
				if err := checkText("an element of attribute ", name, e.Value); err != nil {
					return err
				}
			}
		}
	case value.List, value.Map:
		if depth >= value.MaxDepth {
			return refused("attribute %s is nested deeper than %d levels", name, value.MaxDepth)
		}
		if k == value.Map {
			return checkItem(v.Item(), depth+1)
		}
		for _, e := range v.Elements() {
			if err := checkValue(name, e.Value, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// Apply is the row that a valid write makes of the given row, without regard to its
// condition; nil is no row. The result shares memory with both. ErrRefused says that an
// Add is impossible.
func (t *Table) Apply(w *Write, row value.Item) (value.Item, error) {
	switch {
	case w.Check:
		return row, nil
	case w.Delete:
		return nil, nil
	case w.Put != nil:
		return w.Put, nil
	}
	if row == nil {
		row = t.Item(w.Key)
	}
	out := append(make(value.Item, 0, len(row)+len(w.Ops)), row...)
	for i := range w.Ops {
		op := &w.Ops[i]
		at, found := slices.BinarySearchFunc(out, op.Attr, func(a value.Attr, n string) int { return strings.Compare(a.Name, n) })
		v := op.Value
		if op.Kind == Add {
			old := op.From
			if found {
				old = out[at].Value
			}
			var err error
			if v, err = op.sum(old); err != nil {
				return nil, err
			}
		}
		switch {
		case op.Kind == Remove && found:
			out = slices.Delete(out, at, at+1)
		case op.Kind == Remove:
		case found:
			out[at].Value = v
		default:
			out = slices.Insert(out, at, value.Attr{Name: op.Attr, Value: v})
		}
	}
	return out, nil
}

// sum is the result of ADD on an attribute: a number that is missing counts as 0. The error says
// that the result would have more than 38 digits, or that the attribute is no number.
func (op *Op) sum(old value.Value) (value.Value, error) {
	if k := old.Kind(); k != value.Number && k != value.Missing {
		return old, refused("the update adds to %s, which is a %v", op.Attr, k)
	}
	v, err := value.AddNumbers(old, op.Value)
	if err != nil {
		return v, refused("the update adds to %s: %v", op.Attr, err)
	}
	return v, nil
}

// CheckSize returns ErrRefused if a row is too large.
func CheckSize(row value.Item) error {
	if n := row.Size(); n > MaxItemBytes {
		return refused("the row would have %d bytes, the limit is %d", n, MaxItemBytes)
	}
	return nil
}

// IndexEntry is the row's key in an index; ok is false if the row has no entry.
// ErrRefused says that such a row must not be written.
func IndexEntry(ix *Index, row value.Item) (Key, bool, error) {
	return ix.Entry(row.Get(ix.Key.Partition.Name), row.Get(ix.Key.Sort.Name))
}

// Entry is IndexEntry for a row whose values of the index's key attributes are known.
// sort is Missing if the index has no sort key.
func (ix *Index) Entry(partition, sort value.Value) (k Key, ok bool, err error) {
	ok = !partition.IsMissing() && (ix.Key.Sort.Name == "" || !sort.IsMissing())
	if !partition.IsMissing() {
		err = checkKeyAttr(ix.Key.Partition, partition, MaxPartitionBytes)
	}
	if !sort.IsMissing() && err == nil {
		err = checkKeyAttr(ix.Key.Sort, sort, MaxSortBytes)
	}
	if err != nil {
		return Key{}, false, fmt.Errorf("index %s: %w", ix.Name, err)
	}
	return Key{Partition: partition, Sort: sort}, ok, nil
}

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrRefused}, args...)...)
}

// Failed is err with the operation, the table and the key of the write added.
func (w *Write) Failed(err error) error {
	op := "update"
	switch {
	case w.Put != nil:
		op = "put"
	case w.Delete:
		op = "delete"
	case w.Check:
		op = "check"
	}
	return &failure{op: op, ref: w.Ref.Clone(), err: err}
}

// failure formats its text only on demand, because a failed condition is ordinary.
type failure struct {
	op  string
	ref Ref
	err error
}

func (f *failure) Error() string { return f.op + " " + f.ref.String() + ": " + f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func (f *failure) FailedTables() []string { return []string{f.ref.Table} }

// FailedIn is err of a call that asked these tables. Its text names them.
func FailedIn(err error, tables ...string) error {
	return &failedIn{slices.Sorted(slices.Values(tables)), err}
}

type failedIn struct {
	tables []string
	err    error
}

func (f *failedIn) Error() string { return strings.Join(f.tables, ", ") + ": " + f.err.Error() }
func (f *failedIn) Unwrap() error { return f.err }

func (f *failedIn) FailedTables() []string { return f.tables }

// FailedTables returns the tables of the call that failed, of which one at least has refused it; nil if the error does
// not tell. An error that translates their names has them in a method of this name.
func FailedTables(err error) []string {
	var of interface{ FailedTables() []string }
	if errors.As(err, &of) {
		return of.FailedTables()
	}
	return nil
}

// Clone returns a copy whose key shares no memory with others.
func (r Ref) Clone() Ref {
	return Ref{Table: r.Table, Key: Key{Partition: r.Key.Partition.Clone(), Sort: r.Key.Sort.Clone()}}
}

// String is the table and the key, for messages.
func (r Ref) String() string {
	b := value.AppendPlain([]byte(r.Table+" "), r.Key.Partition)
	if !r.Key.Sort.IsMissing() {
		b = value.AppendPlain(append(b, ", "...), r.Key.Sort)
	}
	return string(b)
}
