package owntable

import (
	"slices"
	"strings"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// The rows of ledger|MODEL|ROW are ledgers: the sums for one target row, and up to
// which position of each shard. A consumer writes a ledger before its target, accumulators
// and positions in one write, so each record counts once; a crash between the two leaves a
// ledger that is ahead of its target, and the batch comes again. There is one for each row
// that anything counts for, of about 100 bytes for each value, and 39 for each shard that a
// function keeps there (runner.Work.Redundant). An empty one whose target is gone expires.
// The version rises with every change of a sum, and of how far a log is counted. A note about a dead
// letter goes with its letter, or once the target is gone.
const (
	ledgerVersion = Count
	ledgerStale   = Stale
	ledgerUnshown = Unshown
	ledgerUnmoved = Unmoved
	ledgerPruned  = Pruned // how often positions of shards were removed; absent for never
	ledgerSkip    = "h:"   // and an attribute: the end of its skip
	ledgerBegin   = "g:"   // and an attribute: the beginning of its skip, in the opposite order
	ledgerBut     = "i:"   // and an attribute: the ranges that its skip leaves out; absent for none
)

// Lack is a ledger's note of a dead letter about a value that its target does not show.
type Lack struct{ attr string }

// The values that a target does not show.
var (
	LacksTallies  = Lack{ledgerUnshown} // distincts over their max
	LacksStatuses = Lack{ledgerUnmoved} // stages over their max
	LacksAll      = Lack{ledgerStale}   // the row refuses its value
)

// LedgerRow is a ledger as it was read. nil stands for one in which nothing was counted.
type LedgerRow value.Item

// Version returns the ledger's version, Missing if there is no ledger.
func (l LedgerRow) Version() value.Value { return value.Item(l).Get(ledgerVersion) }

// PositionIn returns the position of the last record of a shard that the ledger includes,
// zero for none.
func (l LedgerRow) PositionIn(shardKey string) events.Position {
	return events.PositionFrom(value.Item(l).Get(PositionOf(shardKey)))
}

// Epoch returns how often positions of shards were removed from the ledger, Missing for never.
// Without a position of its shard, a worker may count a record only if it has read the shard's
// frontier after this epoch began, and the epoch is still the same.
func (l LedgerRow) Epoch() value.Value { return value.Item(l).Get(ledgerPruned) }

// Positions returns the attributes that hold the positions of some shards, without those
// that the ledger does not have.
func (l LedgerRow) Positions(shardKeys []string) (out []value.Attr) {
	for _, key := range shardKeys {
		if v := value.Item(l).Get(PositionOf(key)); !v.IsMissing() {
			out = append(out, newAttr(PositionOf(key), v))
		}
	}
	return out
}

// LackOf returns the ledger's note of values that cannot be shown: the id of the dead
// letter, and its reason (ShortenText); "" for nothing.
func (l LedgerRow) LackOf(what Lack) (letter, why string) {
	letter, why, _ = strings.Cut(value.Item(l).Get(what.attr).Text(), " ")
	return letter, why
}

// sameNotes is the condition that the ledger has the notes that it had when it was read, which
// change without its version.
func (l LedgerRow) sameNotes() store.Cond {
	return store.Cond{
		{store.AsRead(ledgerUnshown, value.Item(l).Get(ledgerUnshown))}, {store.AsRead(ledgerUnmoved, value.Item(l).Get(ledgerUnmoved))},
		{store.AsRead(ledgerStale, value.Item(l).Get(ledgerStale))},
	}
}

// WithVersion returns the ledger with a version, if it has none.
func (l LedgerRow) WithVersion(version int64) LedgerRow {
	if value.Item(l).Has(ledgerVersion) {
		return l
	}
	return LedgerRow(value.Item(l).With(newAttr(ledgerVersion, value.OfInt(version))))
}

// sameVersion holds while nothing was counted or taken back since the row was read.
func (l LedgerRow) sameVersion() []store.Test {
	return []store.Test{store.AsRead(ledgerVersion, l.Version())}
}

// uncountedCondition is the condition that a ledger has not seen a position of a shard. If it has no
// position of the shard, its epoch must be as the writer knows it.
func uncountedCondition(shardKey string, first events.Position, epoch value.Value) store.Cond {
	name := PositionOf(shardKey)
	cond := store.Cond{store.Below(name, first.Value())}
	if !IsUnlogged(shardKey) {
		cond = append(cond, []store.Test{{Attr: name, Is: store.Lt, Value: first.Value()}, store.AsRead(ledgerPruned, epoch)})
	}
	return cond
}

// raiseVersion adds 1 to a ledger's version, and keeps the ledger from expiring. before is the version
// before the first.
func raiseVersion(before value.Value) []store.Op {
	return []store.Op{{Kind: store.Add, Attr: ledgerVersion, Value: value.OfInt(1), From: before}, removeAttr(Expiry)}
}

// addAmounts appends an addition for each amount. An accumulator that is absent counts as 0 (DynamoDB,
// ADD).
func addAmounts(ops []store.Op, amounts []value.Attr) []store.Op {
	for _, a := range amounts {
		ops = append(ops, store.Op{Kind: store.Add, Attr: a.Name, Value: a.Value})
	}
	return ops
}

// CountLedger adds amounts of the records of a shard from first to last, unless the ledger
// has seen the first of them. epoch is the ledger's as it is
// known (LedgerRow.Epoch). The write returns the row.
func CountLedger(at store.Ref, shardKey string, first, last events.Position, amounts []value.Attr, before, epoch value.Value) store.Write {
	name := PositionOf(shardKey)
	ops := append(append(make([]store.Op, 0, len(amounts)+3), setAttr(name, last.Value())), raiseVersion(before)...)
	return store.Write{Ref: at, Ops: addAmounts(ops, amounts), Return: true, If: uncountedCondition(shardKey, first, epoch)}
}

// AddLedger adds amounts. Other writes of the same transaction say that they were not added before.
func AddLedger(at store.Ref, amounts []value.Attr, before value.Value) store.Write {
	return store.Write{Ref: at, Ops: addAmounts(raiseVersion(before), amounts)}
}

// RaiseLedger raises the version of a ledger whose sums stay, unless a fact that was put is within
// a skip of the ledger, and changes skips. The write returns the row.
func RaiseLedger(at store.Ref, before value.Value, put []PutFacts, skips ...Skip) store.Write {
	w := store.Write{Ref: at, Return: true, Ops: raiseVersion(before)}
	for _, p := range put {
		end, begin := ledgerSkip+p.Attr, ledgerBegin+p.Attr
		w.If = append(w.If, []store.Test{
			{Attr: end, Is: store.Absent}, {Attr: end, Is: store.Le, Value: value.OfString(slices.Min(p.Names))},
			{Attr: begin, Is: store.Lt, Value: value.OfString(opposite.Replace(slices.Max(p.Names)))},
		})
	}
	for _, s := range skips {
		w.Ops = append(w.Ops, s.ops()...)
	}
	return w
}

// MaxPut is how many PutFacts a RaiseLedger can ask about. A caller with more takes the skips away.
const MaxPut = 32

// PutFacts are the names of facts that were put, of those that decide an attribute (OrderedFact).
type PutFacts struct {
	Attr  string
	Names []string
}

// PassLedger moves a ledger past the records of a shard from first to last, which dead letters of the same transaction
// keep, unless it has seen the first of them. epoch is the ledger's as it is known.
func PassLedger(at store.Ref, shardKey string, first, last events.Position, before, epoch value.Value) store.Write {
	return store.Write{Ref: at, If: uncountedCondition(shardKey, first, epoch), Ops: append([]store.Op{setAttr(PositionOf(shardKey), last.Value())}, raiseVersion(before)...)}
}

// Forget removes the positions of shards that are redundant, and begins the ledger's next epoch,
// unless one of these positions has changed since the ledger was read.
func (l LedgerRow) Forget(at store.Ref, shardKeys []string) store.Write {
	w := store.Write{Ref: at, Ops: []store.Op{addTo(ledgerPruned, 1)}}
	for _, a := range l.Positions(shardKeys) {
		w.Ops, w.If = append(w.Ops, removeAttr(a.Name)), append(w.If, []store.Test{store.AsRead(a.Name, a.Value)})
	}
	return w
}

// Empty reports whether the ledger has the content of a new one, except how far shards are
// counted: all sums are 0, and it notes no letter.
func (l LedgerRow) Empty() bool {
	for _, a := range l {
		if IsSum(a.Name) && !value.Equal(a.Value, value.OfInt(0)) {
			return false
		}
	}
	is := value.Item(l)
	return !is.Has(ledgerStale) && !is.Has(ledgerUnshown) && !is.Has(ledgerUnmoved)
}

// Expires reports whether TTL will delete the ledger.
func (l LedgerRow) Expires() bool { return value.Item(l).Has(Expiry) }

// Expire sets when TTL deletes an empty ledger, on condition that it has not changed since it
// was read. Other writes of the same transaction say that the target is gone. Each write that
// raises the version, and KeepLedger, take it back.
func (l LedgerRow) Expire(at store.Ref, expiry value.Value) store.Write {
	return store.Write{Ref: at, Ops: []store.Op{setAttr(Expiry, expiry)}, If: append(store.Cond{l.sameVersion()}, l.sameNotes()...)}
}

// ExpiringWrite is a write that raises the version of a ledger, which expires all the same if that was set.
func ExpiringWrite(w store.Write) store.Write {
	w.Ops = slices.DeleteFunc(w.Ops, func(op store.Op) bool { return op.Attr == Expiry })
	return w
}

// KeepLedger keeps a ledger from expiring, if it has not expired yet.
func KeepLedger(at store.Ref) store.Write {
	return store.Write{Ref: at, Ops: []store.Op{removeAttr(Expiry)}, If: store.Cond{{{Attr: Partition, Is: store.Exists}}}}
}

// Unchanged is, in a transaction, the condition that nothing was counted since the ledger
// was read.
func (l LedgerRow) Unchanged(at store.Ref) store.Write {
	return store.Write{Ref: at, Check: true, If: store.Cond{l.sameVersion()}}
}

// NoteLack notes a dead letter that says why values cannot be shown, or with "" that all can, on
// condition that the ledger's version is the same as when it was read.
func (l LedgerRow) NoteLack(what Lack, at store.Ref, letter, why string) store.Write {
	return store.Write{Ref: at, Ops: []store.Op{store.Assign(what.attr, lackNote(letter, why)), removeAttr(Expiry)}, If: store.Cond{l.sameVersion()}}
}

// ForgetLack removes the note about a letter that is deleted in the same transaction.
func ForgetLack(what Lack, at store.Ref) store.Write {
	return store.Write{Ref: at, Ops: []store.Op{removeAttr(what.attr)}, If: store.Cond{{{Attr: Partition, Is: store.Exists}}}}
}

// WithLack returns the ledger as NoteLack leaves it.
func (l LedgerRow) WithLack(what Lack, letter, why string) LedgerRow {
	return LedgerRow(value.Item(l).With(newAttr(what.attr, lackNote(letter, why)), newAttr(Expiry, value.Value{})))
}

// lackNote is how a ledger names the dead letter of a value that cannot be shown, and why (ShortenText); Missing
// removes the note.
func lackNote(letter, why string) value.Value {
	if letter == "" {
		return value.Value{}
	}
	return value.OfString(letter + " " + ShortenText(why))
}

// Applied is how far a shard is applied.
type Applied struct {
	Key string // under which ledgers keep it
	At  events.Position
}

// AddsAtOnce is how many attributes of a ledger one expression of DynamoDB may change.
const AddsAtOnce = 250

// RaiseVersion raises the version of a ledger for values beside it that change in the same transaction, on
// condition that it has the version that it had when it was read.
func (l LedgerRow) RaiseVersion(at store.Ref) store.Write {
	return store.Write{Ref: at, Ops: raiseVersion(l.Version()), If: store.Cond{l.sameVersion()}}
}

// Ledger refers to the ledger of a target row.
func Ledger(model string, target store.Ref) store.Ref {
	return LedgerAt(Ledgers(model) + RowText(target))
}

// LedgerAt refers to the ledger with a partition key, as a scan of the own table finds it. Whether there
// is one is another question.
func LedgerAt(partition string) store.Ref { return Ref(partition, "") }

// Ledgers returns the prefix of the partition keys of a model's ledgers.
func Ledgers(model string) string { return "ledger|" + model + "|" }
