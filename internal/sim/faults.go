package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"weir/internal/seq"
)

// Kind is a kind of fault: a failure that no program has caused, or something unfriendly
// that an application does (the kinds that begin with Hostile).
type Kind string

// The kinds of faults.
const (
	CrashBefore      Kind = "crash-before"      // a process dies before its write happens
	CrashAfter       Kind = "crash-after"       // it dies after its write
	CrashBetween     Kind = "crash-between"     // it dies after all effects, before its checkpoint
	Redelivery       Kind = "redelivery"        // any part of the applied records is delivered again
	Reorder          Kind = "reorder"           // a shard is read far behind the others
	Bisect           Kind = "bisect"            // a failed batch is delivered in halves
	PartialReply     Kind = "partial-reply"     // a function has done the first part of a batch
	Zombie           Kind = "zombie"            // a worker is paused during a call while others go on
	TwoWorkers       Kind = "two-workers"       // two workers do the work of one
	Split            Kind = "split"             // a shard closes, and its children continue it
	Throttle         Kind = "throttle"          // a call is refused for now
	Unknown          Kind = "unknown"           // a call has happened, and its answer is lost
	Conflict         Kind = "conflict"          // a transaction conflicts with another
	Unprocessed      Kind = "unprocessed"       // a part of a call has happened
	Expiry           Kind = "expiry"            // TTL deletes a row, late
	Skew             Kind = "skew"              // the clock of a process is wrong
	ClockBack        Kind = "clock-back"        // a clock is set back
	PowerCut         Kind = "power-cut"         // all processes die, and changes that were not durable are lost
	DiskFull         Kind = "disk-full"         // a disk accepts no data for now
	ShortWrite       Kind = "short-write"       // it accepts a part
	FailedSync       Kind = "failed-sync"       // it does not make the accepted data durable
	TornLog          Kind = "torn-log"          // after a power cut a file ends within the last write
	FlippedLog       Kind = "flipped-log"       // after a power cut the last bytes of a file are changed
	Trim             Kind = "trim"              // records expire that some consumer has not applied
	TornTail         Kind = "torn-tail"         // a file ends within the last write
	FlippedBits      Kind = "flipped-bits"      // the last bytes of a file are changed
	SearchBusy       Kind = "search-429"        // the index accepts nothing for now
	SearchDown       Kind = "search-503"        // the index is down, and may have applied some changes
	SearchTimeout    Kind = "search-timeout"    // the index has applied all, and its answer is lost
	SearchMixed      Kind = "search-mixed"      // the index accepts some changes, and says which
	SearchVersion    Kind = "search-version"    // a change of a document conflicts with another
	HostileOverwrite Kind = "hostile-overwrite" // the application writes back a row that it read long ago
	HostileRecreate  Kind = "hostile-recreate"  // it deletes a row and creates it again
	HostileRename    Kind = "hostile-rename"    // it writes a row and deletes it at once
	Resent           Kind = "resent"            // a driver lost the answer to one write of a call, and sent it again
)

// Kinds are all kinds of faults.
var Kinds = []Kind{
	CrashBefore, CrashAfter, CrashBetween, Redelivery, Reorder, Bisect, PartialReply, Zombie, TwoWorkers, Split,
	Throttle, Unknown, Conflict, Unprocessed, Expiry, Skew, ClockBack, PowerCut,
	DiskFull, ShortWrite, FailedSync, TornLog, FlippedLog, Trim, TornTail, FlippedBits, SearchBusy, SearchDown, SearchTimeout, SearchMixed, SearchVersion,
	HostileOverwrite, HostileRecreate, HostileRename,
	Resent,
}

// ParseKinds parses a comma-separated list of kinds; "" stands for all of them and "none"
// for none.
func ParseKinds(list string) ([]Kind, error) {
	switch list {
	case "":
		return Kinds, nil
	case "none":
		return nil, nil
	}
	var out []Kind
	for _, name := range strings.Split(list, ",") {
		k := Kind(strings.TrimSpace(name))
		if !slices.Contains(Kinds, k) {
			return nil, fmt.Errorf("there is no fault %q; there are %s", k, joinKinds(Kinds))
		}
		out = append(out, k)
	}
	return out, nil
}

func joinKinds(kinds []Kind) string {
	return strings.Join(seq.Map(kinds, func(k Kind) string { return string(k) }), ", ")
}

// faults decides when a fault strikes. The seed chooses the rates: some kinds never strike
// in a run, some at every third chance.
type faults struct {
	dice    *dice
	rates   map[Kind]float64
	left    int // how many more may strike: a run must end
	number  int // of the last one
	without map[int]bool
	struck  map[Kind]int
	log     []strike
	over    bool
	fair    bool // a quiet spell: faults that kill or hinder processes do not strike
	spells  *spells
}

// strike is one fault that happened.
type strike struct {
	number int
	kind   Kind
}

// most is how many faults a run may have.
const most = 250

// How much more likely the first fault of a kind is, and the limit of that chance.
const (
	sooner = 8
	soon   = 0.25
)

// newFaults chooses the rate of each kind by the seed. One run in twenty has no faults.
// Faults whose number is in without do not strike.
func newFaults(seed uint64, kinds []Kind, without map[int]bool) *faults {
	f := &faults{dice: newDice(seed, "faults", 0), rates: map[Kind]float64{}, left: most, without: without, struck: map[Kind]int{}}
	d := newDice(seed, "rates", 0)
	calm := d.chance(0.05)
	for _, k := range Kinds {
		rate := 0.3
		if u := d.n(20); calm || u < 6 {
			rate = 0
		} else if u < 13 {
			rate = 0.01 + float64(d.n(100))/2500
		} else if u < 18 {
			rate = 0.05 + float64(d.n(100))/1000
		}
		if slices.Contains(kinds, k) {
			f.rates[k] = rate
		}
	}
	return f
}

// always are the kinds that strike in quiet spells too: those of the application,
// of streams and of clocks, and a paused process beside another (TwoWorkers).
var always = []Kind{Redelivery, Reorder, TwoWorkers, Split, Expiry, Skew, ClockBack, Trim, HostileOverwrite, HostileRecreate, HostileRename}

// spells is the schedule of quiet spells, in which no fault kills or hinders a process,
// and rough ones. Without quiet spells a process would never live long enough to get its
// share of the work.
type spells struct {
	d           *dice
	fair, rough int // the most turns that a spell of each kind has
	turns       int // left of this spell
}

// newSpells chooses how long the spells of a run are.
func newSpells(seed uint64) *spells {
	d := newDice(seed, "weather", 0) // another label would change every schedule
	return &spells{d: d, fair: 100 + d.n(700), rough: 30 + d.n(300)}
}

// nextTurn goes on to the next turn, and ends the spell if it was the last one.
func (f *faults) nextTurn() {
	if f.spells.turns--; f.spells.turns > 0 {
		return
	}
	if f.fair {
		f.fair, f.spells.turns = false, 1+f.spells.d.n(f.spells.rough)
	} else {
		f.beginQuiet()
	}
}

// beginQuiet begins a quiet spell.
func (f *faults) beginQuiet() { f.fair, f.spells.turns = true, 1+f.spells.d.n(f.spells.fair) }

// strike reports whether a fault strikes here and now.
func (f *faults) strike(k Kind) bool { return f.strikeWeighted(k, 1) }

// strikeWeighted is strike with a factor of its chance, for faults with more, or fewer, occasions than others. The
// first fault of a kind in a run is more likely than later ones: so a kind with few
// occasions strikes in most runs that may have it, and meets all other kinds.
func (f *faults) strikeWeighted(k Kind, times float64) bool {
	p := f.rates[k] * times
	if f.struck[k] == 0 {
		p = max(p, min(soon, sooner*p))
	}
	if f.over || f.fair && !slices.Contains(always, k) || p == 0 || f.left == 0 || !f.dice.chance(min(0.9, p)) {
		return false
	}
	f.number++
	if f.without[f.number] {
		return false
	}
	f.left--
	f.struck[k]++
	f.log = append(f.log, strike{f.number, k})
	return true
}

// countCaused counts a fault that other faults have caused.
func (f *faults) countCaused(k Kind) { f.struck[k]++ }

// pairsStruck are the pairs of kinds that both struck in the run.
func (f *faults) pairsStruck() (out []string) {
	met := slices.Sorted(maps.Keys(f.struck))
	for i, a := range met {
		for _, b := range met[i+1:] {
			out = append(out, pairOf(a, b))
		}
	}
	return out
}

// pairOf names a pair of kinds, whichever comes first.
func pairOf(a, b Kind) string {
	if a > b {
		a, b = b, a
	}
	return string(a) + "+" + string(b)
}
