package owntable

import (
	"strings"

	"weir/internal/store"
	"weir/internal/value"
)

// The rows of fact|MODEL|LIST are facts about statuses: the report of one source row about
// a target (s WORD|ID), a row that takes part in a latest (s ORDER: see OrderedFact), a member of a group (s m|HASH), or a target whose
// status depends on a group (s t|HASH). Each is a Member. There are at most as many facts as reports of source rows, each as large as its
// report.
const (
	factWho   = "who"
	factTable = "t"
	factKey   = "key"
)

// Fact refers to one fact, for a status. list identifies the partition within the model.
func Fact(model, list, name string) store.Ref { return Ref(Facts(model)+list, name) }

// FactsOf names the list of the facts about one target of a derivation.
func FactsOf(derivation string, target store.Ref) string {
	return FactList(derivation, RowText(target))
}

// FactList names a list of facts of a derivation, or of a list of others. Different ones have different names.
func FactList(derivation, of string) string { return escapeText(derivation) + "|" + of }

// CutFactList undoes FactList.
func CutFactList(list string) (derivation, of string) {
	derivation, of, _ = strings.Cut(list, "|")
	return unescapeText(derivation), of
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

// ReachedFact names the fact that a status word is reached. by is the row that tells it, or
// the list element for which it is told.
func ReachedFact(word, by string) string { return Reaching(word) + Hash(by) }

// Reaching returns the prefix of the names of all facts that a word is reached.
func Reaching(word string) string { return JoinTexts([]string{word}) + "|" }

// Prefixes of the names of members and of targets.
const (
	MembersBegin = "m|"
	targetsBegin = "t|"
)

// GroupMember names the fact that who is a member of a group (`others` in a model). In their
// partition, the names of all members sort before those of all targets.
func GroupMember(who string) string { return MembersBegin + Hash(who) }

// ToldMember is the content of the fact about a member.
func ToldMember(who value.Value) value.Item { return value.Item{newAttr(factWho, who)} }

// TargetFact names the fact that a row's status depends on a group.
func TargetFact(row string) string { return targetsBegin + Hash(row) }

// FactOfTarget is the content of the fact about a target: its table and its key attributes.
func FactOfTarget(table string, key value.Item) value.Item {
	return value.NewItem(newAttr(factTable, value.OfString(table)), newAttr(factKey, value.OfMap(key)))
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
