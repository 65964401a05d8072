package live_test

import (
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"weir/internal/owntable"
)

// holders returns how many shards each process holds, in order, and how often leases were
// taken.
func (w *world) holders() (counts []int, taken int64) {
	held := map[string]int{}
	for !w.begun() {
		time.Sleep(time.Millisecond)
	}
	for _, row := range w.leases() {
		l, err := owntable.DecodeLease(row)
		must(w.T, err)
		if taken += l.Fence; l.Owner != "" {
			held[l.Owner]++
		}
	}
	return slices.Sorted(maps.Values(held)), taken
}

// holds waits until processes hold so many shards each.
func (w *world) holds(want ...int) (taken int64) {
	w.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		counts, taken := w.holders()
		if slices.Equal(counts, want) {
			return taken
		}
		if time.Now().After(deadline) {
			w.Fatalf("processes hold %v shards, should hold %v", counts, want)
		}
		time.Sleep(time.Millisecond)
	}
}

// hold waits until processes hold so many shards each, and checks that it stays so and how
// many shards moved since a count of taken leases.
func (w *world) hold(before, moves int64, want ...int) (taken int64) {
	w.Helper()
	taken = w.holds(want...)
	time.Sleep(2 * lease)
	counts, after := w.holders()
	if !slices.Equal(counts, want) || after != taken {
		w.Errorf("processes held %v shards, and then %v; %d were taken meanwhile", want, counts, after-taken)
	}
	if taken-before != moves {
		w.Errorf("%d shards were taken until processes held %v, should be %d", taken-before, want, moves)
	}
	return taken
}

// TestProcessesShareEvenly has processes come, stop and die while an application writes. The
// shards are shared evenly each time, no more of them move than must, and all is
// counted once.
func TestProcessesShareEvenly(t *testing.T) {
	w := worldOf(t, 10, 3)
	stop := w.application(5)
	w.start(0)
	taken := w.hold(0, 10, 10)
	w.start(1)
	taken = w.hold(taken, 5, 5, 5)
	w.start(2)
	w.hold(taken, 3, 3, 3, 4)
	w.procs[1].stop()
	must(t, <-w.procs[1].ended)
	taken = w.holds(5, 5)
	w.kill(2)
	w.hold(taken, 5, 10)
	stop()
	w.settles()
	w.countsEachOnce()
	w.procs[0].stop()
	must(t, <-w.procs[0].ended)
	w.oneReaderEach()
}

// TestShardsStayUntilApplied has a process whose sink stands still keep its shards, because what
// it has read is nowhere else once the stream has forgotten it. When the sink goes on,
// another process gets its share.
func TestShardsStayUntilApplied(t *testing.T) {
	w := worldOf(t, 4, 2)
	w.start(0)
	taken := w.hold(0, 4, 4)
	w.procs[0].sink(true)
	rng := rand.New(rand.NewPCG(3, 3))
	for range 300 {
		w.deed(rng)
	}
	time.Sleep(lease)
	w.start(1)
	time.Sleep(3 * lease)
	if counts, now := w.holders(); !slices.Equal(counts, []int{4}) || now != taken {
		t.Errorf("a process released shards that it had not applied: processes hold %v", counts)
	}
	w.procs[0].sink(false)
	w.hold(taken, 2, 2, 2)
	w.settles()
	w.countsEachOnce()
	for i := range w.procs {
		w.procs[i].stop()
		must(t, <-w.procs[i].ended)
	}
}

// TestShardsThatOneCannotTake has a process that cannot open its spools. Its share is taken by
// another after a while, and not released again at once.
func TestShardsThatOneCannotTake(t *testing.T) {
	w := worldOf(t, 4, 2)
	w.start(0)
	w.hold(0, 4, 4)
	must(t, os.MkdirAll(w.dirs[1], 0o755))
	must(t, os.WriteFile(filepath.Join(w.dirs[1], "gallery"), nil, 0o644)) // where the spools would be
	w.start(1)
	w.holds(2)
	w.hold(w.holds(4), 0, 4)
	for i := range w.procs {
		w.procs[i].stop()
		must(t, <-w.procs[i].ended)
	}
}

// TestProcessesKnowHowManyTheyAre: each process is told how many there are, the new one not
// before the others have seen it, and the others when one is dead.
func TestProcessesKnowHowManyTheyAre(t *testing.T) {
	w := worldOf(t, 4, 3)
	var mu sync.Mutex
	told, first := map[int]int{}, map[int]time.Time{}
	w.sharing = func(process, processes int) {
		mu.Lock()
		defer mu.Unlock()
		if told[process] = processes; first[process].IsZero() {
			first[process] = time.Now()
		}
	}
	know := func(want map[int]int) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			mu.Lock()
			got := maps.Clone(told)
			mu.Unlock()
			if maps.Equal(got, want) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("processes were told %v, should be told %v", got, want)
			}
		}
	}
	w.start(0)
	know(map[int]int{0: 1})
	begun := time.Now()
	w.start(1)
	know(map[int]int{0: 2, 1: 2})
	if after := first[1].Sub(begun); after < 2*lease/5 {
		t.Errorf("a new process was told after %v, before the other one has surely seen it", after)
	}
	w.start(2)
	know(map[int]int{0: 3, 1: 3, 2: 3})
	w.kill(1)
	know(map[int]int{0: 2, 1: 3, 2: 2})
	w.procs[2].stop()
	must(t, <-w.procs[2].ended)
	know(map[int]int{0: 1, 1: 3, 2: 2})
	w.procs[0].stop()
	must(t, <-w.procs[0].ended)
}

// TestManyShardsAreTakenOver: a process that takes over more shards than one transaction moves
// counts each of their records once.
func TestManyShardsAreTakenOver(t *testing.T) {
	const shards = 150
	w := worldOf(t, shards, 2)
	w.start(0)
	w.hold(0, shards, shards)
	rng := rand.New(rand.NewPCG(3, 3))
	for range 20 {
		w.deed(rng)
	}
	w.settles()
	w.kill(0)
	w.start(1)
	w.holds(shards)
	for range 20 {
		w.deed(rng)
	}
	w.settles()
	w.countsEachOnce()
	w.procs[1].stop()
	must(t, <-w.procs[1].ended)
}
