package owntable

import (
	"strings"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// The rows of fact|MODEL|LIST are facts about statuses: what one source row reports about
// a target (s WORD|ID), a row that takes part in a latest (s ORDER: see Ordered), a member of a group (s m|HASH), or a target whose status depends
// on a group (s t|HASH). Consumers of the source's stream write them, in any order; the
// newest position wins. A fact that its source withdrew stays without what it told until
// TTL deletes it, so an older report that arrives late does not come back. There are at
// most as many facts as reports of source rows, each as large as what it tells.
const (
	factTold     = "v" // absent once the fact was withdrawn
	factWho      = "who"
	factTable    = "t"
	factKey      = "key"
	factPosition = Position
)

// FactRow is the content of a fact. The zero FactRow stands for a fact that does not
// exist.
type FactRow struct {
	Name     string          // the sort key
	Position events.Position // of the change of the source that reported or withdrew it
	// Says is what the source reports; never nil if the fact holds, even if it tells
	// nothing. nil if the fact was withdrawn.
	Says value.Item
	Raw  value.Value // what the row holds in its place, for people
	noted
}

// FactFrom decodes the row of a fact, nil if there is none.
func FactFrom(row value.Item) FactRow {
	f := FactRow{Name: row.Get(Sort).Text(), Position: events.PositionFrom(row.Get(factPosition)), Raw: row.Get(factTold), noted: note(row, factPosition)}
	if !f.Raw.IsMissing() {
		if f.Says = f.Raw.Item(); f.Says == nil {
			f.Says = value.Item{}
		}
	}
	return f
}

// Keep stores a fact, or that it was withdrawn, unless the row has this position or a newer
// one. expiry is when a withdrawn fact may be deleted: once nothing older can arrive.
func (f FactRow) Keep(at store.Ref, expiry value.Value) store.Write {
	return f.write(at, expiry, store.Cond{store.Below(factPosition, f.Position.Value())})
}

// Replace stores another fact in place of this one, on condition that this one has not
// changed since it was read.
func (f FactRow) Replace(at store.Ref, next FactRow, expiry value.Value) store.Write {
	return next.write(at, expiry, f.same(factPosition))
}

// write sets a fact, or withdraws it: without Says it keeps the position and expires, so that
// an older report cannot bring it back.
func (f FactRow) write(at store.Ref, expiry value.Value, cond store.Cond) store.Write {
	told := value.Value{}
	if f.Says != nil {
		told, expiry = value.OfMap(f.Says), value.Value{}
	}
	return store.Write{Ref: at, If: cond, Ops: []store.Op{
		set(factPosition, f.Position.Value()), store.Assign(factTold, told), store.Assign(Expiry, expiry),
	}}
}

// Fact refers to one fact, for a status. list identifies the partition within the model.
func Fact(model, list, name string) store.Ref { return Ref(Facts(model)+list, name) }

// FactsOf names the list of the facts about one target of a derivation.
func FactsOf(derivation string, target store.Ref) string {
	return FactList(derivation, RowText(target))
}

// FactList names a list of facts of a derivation, or of a list of others. Different ones have different names.
func FactList(derivation, of string) string { return escaped(derivation) + "|" + of }

// CutFactList undoes FactList.
func CutFactList(list string) (derivation, of string) {
	derivation, of, _ = strings.Cut(list, "|")
	return unescaped(derivation), of
}

// Facts returns the prefix of the partition keys of a model's facts.
func Facts(model string) string { return "fact|" + model + "|" }

// FactsWithin is FactsFrom for the facts whose names come before one.
func FactsWithin(model, list, from, before string, limit int) store.Query {
	q := FactsFrom(model, list, from, limit)
	q.Sort.Below = value.OfString(before)
	return q
}

// FactsNamed is FactsFrom for the facts whose names begin with a prefix of Reaching, or MembersBegin.
func FactsNamed(model, list, begins, from string, limit int) store.Query {
	end := begins[:len(begins)-1] + string(rune(begins[len(begins)-1]+1))
	return FactsWithin(model, list, max(begins, from), end, limit)
}

// FactsFrom returns the query for the facts of a list whose names do not come before from.
func FactsFrom(model, list, from string, limit int) store.Query {
	ref := Fact(model, list, from)
	return store.Query{Table: TableName, Partition: ref.Key.Partition, Sort: store.Range{From: ref.Key.Sort}, Limit: limit}
}

// Reached names the fact that a status word is reached. by is the row that tells it, or
// the list element for which it is told.
func Reached(word, by string) string { return Reaching(word) + Hash(by) }

// Reaching returns the prefix of the names of all facts that a word is reached.
func Reaching(word string) string { return Texts([]string{word}) + "|" }

// Prefixes of the names of members and of targets.
const (
	MembersBegin = "m|"
	targetsBegin = "t|"
)

// Member names the fact that who is a member of a group (`others` in a model). In their
// partition, the names of all members sort before those of all targets.
func Member(who string) string { return MembersBegin + Hash(who) }

// ToldMember is what the fact about a member tells.
func ToldMember(who value.Value) value.Item { return value.Item{attr(factWho, who)} }

// Target names the fact that a row's status depends on a group.
func Target(row string) string { return targetsBegin + Hash(row) }

// FactOfTarget is what the fact about a target tells: its table and its key attributes.
func FactOfTarget(table string, key value.Item) value.Item {
	return value.NewItem(attr(factTable, value.OfString(table)), attr(factKey, value.OfMap(key)))
}

// TargetOf returns the table and the key attributes of the target that a fact tells of;
// "" and nil if it tells of none.
func TargetOf(told value.Item) (table string, key value.Item) {
	return told.Get(factTable).Text(), told.Get(factKey).Item()
}

// FactOf splits the key of a row of our own table into the list and the name of the
// model's fact that it is; ok is false for any other row.
func FactOf(model string, row value.Item) (list, name string, ok bool) {
	list, ok = strings.CutPrefix(row.Get(Partition).Text(), Facts(model))
	return list, row.Get(Sort).Text(), ok
}
