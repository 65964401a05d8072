package live

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

func total(held map[string]int) (n int) {
	for _, k := range held {
		n += k
	}
	return n
}

// excess is how many shards must leave processes that hold more than a number of their own.
func excess(held, most map[string]int) (n int) {
	for name, k := range held {
		n += max(0, k-most[name])
	}
	return n
}

// fewest is the least number of shards that must leave their processes until no process has
// more than one shard more than another: every choice of those that have one more is tried.
func fewest(shards int, held map[string]int) int {
	names := slices.Sorted(maps.Keys(held))
	least := shards + 1
	for chosen := range 1 << len(names) {
		most, more := map[string]int{}, 0
		for i, name := range names {
			most[name] = shards / len(names)
			if chosen&(1<<i) != 0 {
				most[name]++
				more++
			}
		}
		if more == shards%len(names) {
			least = min(least, excess(held, most))
		}
	}
	return least
}

// TestSharesAreEven: whatever processes hold, the shares are all shards, differ by 1 at most,
// let the fewest shards move, and stay once each process has its own.
func TestSharesAreEven(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 5000 {
		held := map[string]int{}
		for i := range 1 + rng.IntN(8) {
			held[fmt.Sprint("p", i)] = rng.IntN(1 + rng.IntN(40))
		}
		shards := total(held) + rng.IntN(20)
		is := shares(shards, held)
		counts := slices.Sorted(maps.Values(is))
		switch {
		case len(is) != len(held) || total(is) != shards:
			t.Fatalf("%d shards, of which are held %v: the shares are %v", shards, held, is)
		case counts[len(counts)-1]-counts[0] > 1:
			t.Fatalf("%d shards, of which are held %v: the shares %v are uneven", shards, held, is)
		case excess(held, is) != fewest(shards, held):
			t.Fatalf("%d shards, of which are held %v: by the shares %v, %d move, which could be %d", shards, held, is, excess(held, is), fewest(shards, held))
		case !maps.Equal(shares(shards, is), is):
			t.Fatalf("%d shards: processes that hold %v would move some of them", shards, is)
		}
	}
}

// plan is processes that share shards by what each of them last saw, which may be old.
type plan struct {
	*rand.Rand
	owner []string                  // of each shard, "" for none
	live  map[string]bool           // the processes
	seen  map[string]map[string]int // what each process believes that each holds
	moved int                       // shards that were released
}

// look has a process see who holds what.
func (p *plan) look(name string) {
	held := map[string]int{}
	for n := range p.live {
		held[n] = 0
	}
	for _, owner := range p.owner {
		if p.live[owner] {
			held[owner]++
		}
	}
	p.seen[name] = held
}

// act has a process take or release one shard, by what it saw. It knows what itself holds.
func (p *plan) act(name string) {
	held := maps.Clone(p.seen[name])
	if held == nil {
		held = map[string]int{}
	}
	held[name] = 0
	for _, owner := range p.owner {
		if owner == name {
			held[name]++
		}
	}
	from, to := "", name
	room := shares(len(p.owner), held)[name] - held[name]
	if room < 0 {
		from, to = name, ""
	}
	for _, i := range p.Perm(len(p.owner)) {
		if room != 0 && (p.owner[i] == from || from == "" && !p.live[p.owner[i]]) {
			p.owner[i] = to
			if to == "" {
				p.moved++
			}
			return
		}
	}
}

// TestSharesSettle has processes that come, go and see old things share shards. Once they stay
// and see what is, all shards are held, evenly, and none moves any more.
func TestSharesSettle(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 2))
		p := &plan{Rand: rng, owner: make([]string, 1+rng.IntN(60)), live: map[string]bool{"p0": true}, seen: map[string]map[string]int{}}
		step := func() {
			names := slices.Sorted(maps.Keys(p.live))
			name := names[rng.IntN(len(names))]
			if rng.IntN(3) == 0 {
				p.look(name)
			}
			p.act(name)
		}
		for i := range 300 {
			if name := fmt.Sprint("p", i); rng.IntN(20) == 0 {
				p.live[name] = true
			} else if names := slices.Sorted(maps.Keys(p.live)); len(names) > 1 && rng.IntN(25) == 0 {
				delete(p.live, names[rng.IntN(len(names))])
			}
			step()
		}
		for range 4 * len(p.owner) {
			for _, name := range slices.Sorted(maps.Keys(p.live)) {
				p.look(name)
				p.act(name)
			}
		}
		held, before := map[string]int{}, p.moved
		for name := range p.live {
			held[name] = 0
		}
		for _, owner := range p.owner {
			held[owner]++
		}
		counts := slices.Sorted(maps.Values(held))
		if !p.live[p.owner[0]] || len(held) != len(p.live) || counts[len(counts)-1]-counts[0] > 1 {
			t.Fatalf("seed %d: %d shards of %d processes are held as %v", seed, len(p.owner), len(p.live), held)
		}
		for range 50 {
			step()
		}
		if p.moved != before {
			t.Fatalf("seed %d: with shares of %v, %d shards moved", seed, held, p.moved-before)
		}
	}
}
