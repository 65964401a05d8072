package build

import (
	"cmp"
	"hash/fnv"
	"sync"

	"weir/internal/owntable"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// ledgerValues is how many values of ledgers a builder remembers: some 8 MB.
const ledgerValues = 1 << 18

// ledgers tells about how large the ledgers are that a builder writes, since each transaction with one costs
// units for all of it, and the values of a distinct make it large. It remembers the values of all
// ledgers while they are few, and then those of a share of the targets, each of which stands for others: so
// its memory is bounded, and what it says of very many targets together is right on average. The zero value is ready;
// segments use it side by side.
type ledgers struct {
	mu     sync.Mutex
	most   int // values that are remembered; 0 is ledgerValues
	halved int // the share is 1 in 2^halved
	values int
	of     map[uint64]*ledger
}

// ledger is what is known of one: hashes of the names of its values, and their bytes.
type ledger struct {
	values map[uint64]bool
	bytes  int
}

// units returns the write units of a piece's ledgers that are more than one KB, which it takes to have been
// put.
func (l *ledgers) units(piece []runner.ReadTarget) (units int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range piece {
		at, weight := l.at(t.Target)
		if at == nil {
			continue
		}
		for _, row := range t.Rows {
			for _, a := range owntable.InLedger(row.Amounts) {
				if name := hashOf(a.Name); !at.values[name] {
					at.values[name], at.bytes = true, at.bytes+value.Item{a}.Size()
					l.values++
				}
			}
		}
		units += weight * 2 * (store.WriteUnits(at.bytes) - 1)
		for l.values > cmp.Or(l.most, ledgerValues) {
			l.halve()
		}
	}
	return units
}

// reads returns the read units of a target's ledger that are more than one.
func (l *ledgers) reads(target store.Ref) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	at, weight := l.at(target)
	if at == nil {
		return 0
	}
	return weight * (store.ReadUnits(at.bytes) - 1)
}

// at returns a target's ledger, and for how many it stands; nil is one that another stands for.
func (l *ledgers) at(target store.Ref) (at *ledger, weight int) {
	name := hashOf(owntable.RowText(target))
	if !l.has(name) {
		return nil, 0
	}
	if l.of == nil {
		l.of = map[uint64]*ledger{}
	}
	if at = l.of[name]; at == nil {
		at = &ledger{map[uint64]bool{}, runner.LedgerBytes}
		l.of[name] = at
		l.values++ // it takes memory itself
	}
	return at, 1 << l.halved
}

// has reports whether a target is in the share.
func (l *ledgers) has(target uint64) bool { return target>>(64-l.halved) == 0 }

// halve forgets half of the targets.
func (l *ledgers) halve() {
	l.halved++
	for name, at := range l.of {
		if !l.has(name) {
			l.values -= len(at.values) + 1
			delete(l.of, name)
		}
	}
}

func hashOf(name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // it never fails
	return h.Sum64()
}
