package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Kind is a kind of fault: something that goes wrong without anybody's mistake, or
// something rude that an application does.
type Kind string

// The kinds of faults.
const (
	CrashBefore   Kind = "crash-before"   // a process dies, its write has not happened
	CrashAfter    Kind = "crash-after"    // it dies, its write has
	CrashBetween  Kind = "crash-between"  // it dies after all effects, before its position
	Redelivery    Kind = "redelivery"     // what was applied comes again, in any part
	Reorder       Kind = "reorder"        // a shard lies far behind the others
	Bisect        Kind = "bisect"         // a batch that failed comes in halves
	PartialReply  Kind = "partial-reply"  // a function has done the first part of a batch
	Zombie        Kind = "zombie"         // a worker stands still amid a call while others go on
	TwoWorkers    Kind = "two-workers"    // two workers for what one should have
	Split         Kind = "split"          // a shard closes; its children go on
	Throttle      Kind = "throttle"       // a call is refused for now
	Unknown       Kind = "unknown"        // a call has happened, its answer is lost
	Conflict      Kind = "conflict"       // a transaction meets another
	Unprocessed   Kind = "unprocessed"    // a part of a call has happened
	Expiry        Kind = "expiry"         // TTL removes a row, late
	Skew          Kind = "skew"           // a process's clock is wrong
	ClockBack     Kind = "clock-back"     // a clock is set back
	PowerCut      Kind = "power-cut"      // what was not made durable is lost, with all processes
	DiskFull      Kind = "disk-full"      // a disk takes nothing for now
	ShortWrite    Kind = "short-write"    // it takes a part
	FailedSync    Kind = "failed-sync"    // it does not make durable what it took, and forgets it
	TornLog       Kind = "torn-log"       // after a power cut a file ends amid what was written last
	FlippedLog    Kind = "flipped-log"    // after a power cut the last bytes of a file are others
	Trim          Kind = "trim"           // a stream forgets what not everybody has applied
	TornTail      Kind = "torn-tail"      // a file ends amid what was written last
	FlippedBits   Kind = "flipped-bits"   // a file's last bytes are others
	SearchBusy    Kind = "search-429"     // the index takes nothing for now
	SearchDown    Kind = "search-503"     // the index is down, and may have taken some
	SearchTimeout Kind = "search-timeout" // the index has taken all, and does not say so
	SearchMixed   Kind = "search-mixed"   // the index takes some, and says which
	SearchVersion Kind = "search-version" // a document meets another change of it
	RudeOverwrite Kind = "rude-overwrite" // the application puts back what it read long ago
	RudeRecreate  Kind = "rude-recreate"  // it removes a row and makes it again
	RudeRename    Kind = "rude-rename"    // it writes a row that it is about to remove
)

// Kinds are all kinds of faults.
var Kinds = []Kind{
	CrashBefore, CrashAfter, CrashBetween, Redelivery, Reorder, Bisect, PartialReply, Zombie, TwoWorkers, Split,
	Throttle, Unknown, Conflict, Unprocessed, Expiry, Skew, ClockBack, PowerCut,
	DiskFull, ShortWrite, FailedSync, TornLog, FlippedLog, Trim, TornTail, FlippedBits, SearchBusy, SearchDown, SearchTimeout, SearchMixed, SearchVersion,
	RudeOverwrite, RudeRecreate, RudeRename,
}

// ParseKinds reads a list of kinds with commas between them; "" is all of them, and
// "none" none.
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
			return nil, fmt.Errorf("there is no fault %q; there are %s", k, join(Kinds))
		}
		out = append(out, k)
	}
	return out, nil
}

func join(kinds []Kind) string {
	var out []string
	for _, k := range kinds {
		out = append(out, string(k))
	}
	return strings.Join(out, ", ")
}

// faults strike at rates that the seed chooses: some kinds never in a run, some at
// every third chance.
type faults struct {
	dice    *dice
	rates   map[Kind]float64
	left    int // how many more may strike: a run must come to an end
	number  int // of the next one
	without map[int]bool
	struck  map[Kind]int
	log     []strike
	over    bool
	fair    bool // what ends or hinders processes waits for worse weather
	sky     *weather
}

// strike is one fault that happened.
type strike struct {
	number int
	kind   Kind
}

// most is how many faults a run may have.
const most = 250

// How much sooner the first of a kind comes, and the chance that this is at most.
const (
	sooner = 8
	soon   = 0.25
)

func newFaults(seed uint64, kinds []Kind, without map[int]bool) *faults {
	f := &faults{dice: newDice(seed, "faults", 0), rates: map[Kind]float64{}, left: most, without: without, struck: map[Kind]int{}}
	d := newDice(seed, "rates", 0)
	calm := d.chance(0.05)
	for _, k := range Kinds {
		rate := 0.0
		switch u := d.n(20); {
		case calm:
		case u < 6:
		case u < 13:
			rate = 0.01 + float64(d.n(100))/2500
		case u < 18:
			rate = 0.05 + float64(d.n(100))/1000
		default:
			rate = 0.3
		}
		if slices.Contains(kinds, k) {
			f.rates[k] = rate
		}
	}
	return f
}

// always are the kinds that strike in fair weather too: what the application does, and
// what happens to streams, and a process that stands still.
var always = []Kind{Redelivery, Reorder, TwoWorkers, Split, Expiry, Skew, ClockBack, Trim, RudeOverwrite, RudeRecreate, RudeRename}

// weather has spells in which nothing ends or hinders a process, and others: a process
// takes long until it has a place in anything, and would never live to see it.
type weather struct {
	d           *dice
	fair, rough int // how many turns a spell has at the most
	turns       int // that are left of this one
}

func newWeather(seed uint64) *weather {
	d := newDice(seed, "weather", 0)
	return &weather{d: d, fair: 100 + d.n(700), rough: 30 + d.n(300)}
}

// turn is the weather of the next turn.
func (f *faults) turn() {
	switch f.sky.turns--; {
	case f.sky.turns > 0:
	case f.fair:
		f.fair, f.sky.turns = false, 1+f.sky.d.n(f.sky.rough)
	default:
		f.clears()
	}
}

// clears begins a fair spell.
func (f *faults) clears() { f.fair, f.sky.turns = true, 1+f.sky.d.n(f.sky.fair) }

// strike says whether a fault strikes here and now.
func (f *faults) strike(k Kind) bool { return f.might(k, 1) }

// might is strike where there are more, or fewer, occasions than for others. The first
// of a kind in a run comes sooner than others of it: so what has few occasions meets
// most runs that may have it, and all the other kinds.
func (f *faults) might(k Kind, times float64) bool {
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

// anyhow is might in any weather, for where the most is at stake.
func (f *faults) anyhow(k Kind, times float64) bool {
	defer func(fair bool) { f.fair = fair }(f.fair)
	f.fair = false
	return f.might(k, times)
}

// happened counts a fault that came of others.
func (f *faults) happened(k Kind) { f.struck[k]++ }

// pairs are the kinds that met in a run.
func (f *faults) pairs() (out []string) {
	met := slices.Sorted(maps.Keys(f.struck))
	for i, a := range met {
		for _, b := range met[i+1:] {
			out = append(out, pairOf(a, b))
		}
	}
	return out
}

func pairOf(a, b Kind) string {
	if a > b {
		a, b = b, a
	}
	return string(a) + "+" + string(b)
}
