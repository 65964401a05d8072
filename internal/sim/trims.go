package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// trims has a world's streams forget their records after a while, whether somebody
// has read them or not, and holds against it what weir says and counts: of what is
// not counted all lies in gaps that were named, and a gap is named only where
// something is missing. A nil one forgets nothing.
type trims struct {
	*world
	named  map[*shard][]gap
	missed map[string]int // by group and shard: how many records a position has passed uncounted
	// overtaken: something behind a gap was counted by a process that died before its
	// place had passed the gap. What was missing and is found after all, in the spool of
	// another one, is then taken for seen.
	overtaken bool
}

// gap is where records of a shard are missing: between two positions.
type gap struct{ after, before events.Position }

func newTrims(w *world) *trims {
	return &trims{world: w, named: map[*shard][]gap{}, missed: map[string]int{}}
}

// forget has shards forget some of their first records. Mostly those are read, if
// not applied: a sink may be slow. A shard of which nothing was applied yet cannot
// say that something is gone, and forgets nothing.
func (t *trims) forget() { t.each(t.shorten) }

// away is that nobody was there for a day: shards forget what nobody has read, and
// some have closed meanwhile.
func (t *trims) away() {
	t.each(func(in *table, s *shard) {
		if t.begun(in, s) {
			t.maySplit(in, s, 10)
		}
		if upTo := len(s.records); t.strikes(in, s, upTo) {
			t.forgets(in, s, t.part(s, upTo-s.trimmed))
		}
	})
}

func (t *trims) each(do func(in *table, s *shard)) {
	for _, mt := range t.model.Tables {
		in := t.base.tables[mt.Name]
		for _, s := range in.shards {
			do(in, s)
		}
	}
}

// strikes says whether a shard forgets some of its first records, up to so many, now.
func (t *trims) strikes(in *table, s *shard, upTo int) bool {
	return upTo > s.trimmed && t.begun(in, s) && t.might(Trim, 40)
}

func (t *trims) shorten(in *table, s *shard) {
	upTo, all := s.given, 0.05
	if t.open(in, s) { // a gap may grow
		all = 0.7
	}
	if t.sched.chance(all) {
		upTo = min(s.seen, len(s.records))
	}
	if n := t.sleeper(s); n != nil && t.sched.chance(0.8) { // he is to miss what others have applied
		upTo = t.applied(in, s)
	}
	if !t.strikes(in, s, upTo) {
		return
	}
	t.forgets(in, s, t.part(s, upTo-s.trimmed))
}

// part is how many of so many records a shard forgets: of one that is closed often all.
func (t *trims) part(s *shard, of int) int {
	if s.Closed && t.faults.dice.chance(0.5) {
		return of
	}
	return 1 + t.faults.dice.n(of)
}

// open reports whether a gap was named that not every group has passed.
func (t *trims) open(in *table, s *shard) bool {
	all := t.named[s]
	return len(all) > 0 && s.upTo(all[len(all)-1].after) >= t.applied(in, s)
}

// forgets has a shard forget its next records, and go from the list when it is closed
// and has none.
func (w *world) forgets(s *shard, n int) {
	s.trimmed += n
	s.gone = s.Closed && s.trimmed == len(s.records)
	w.note("world", fmt.Sprintf("%s forgets %d of %d, %d are read", s.ID, s.trimmed, len(s.records), s.given), nil)
}

func (t *trims) forgets(in *table, s *shard, n int) {
	t.world.forgets(s, n)
	switch {
	case s.trimmed <= t.applied(in, s):
	case s.gone && s.given < s.trimmed:
		t.reach("a shard is gone that is not read")
	case s.gone:
		t.reach("a shard is gone that is not applied")
	default:
		t.reach("a stream forgets what is not applied")
	}
	t.rouse(in, s)
	t.strand(in, s)
}

// sleeper is a process that stands still while another has taken a shard of its over;
// nil where there is none.
func (t *trims) sleeper(s *shard) *node {
	for _, n := range t.nodes {
		if n.lost[s] && slices.ContainsFunc(n.fibers, func(f *fiber) bool { return f.asleep > 0 }) {
			return n
		}
	}
	return nil
}

// rouse has such a process go on when the stream has forgotten what it would read next,
// which others have applied.
func (t *trims) rouse(in *table, s *shard) {
	n := t.sleeper(s)
	if n == nil || s.trimmed > t.applied(in, s) || s.upTo(n.host.kept[in.Name+"|"+s.ID]) >= s.trimmed {
		return
	}
	t.reach("a stream forgets what a sleeper reads next")
	for _, f := range n.fibers {
		f.asleep = min(f.asleep, t.sched.n(60))
	}
}

// strand has the power fail where a spool is all that there is of records.
func (t *trims) strand(in *table, s *shard) {
	applied := t.applied(in, s)
	for _, h := range t.hosts {
		if at := s.upTo(h.kept[in.Name+"|"+s.ID]); at > applied && s.trimmed > applied && t.faults.anyhow(PowerCut, 10) {
			t.reach("the power fails where only a spool has records")
			h.fails(PowerCut)
		}
	}
}

func (t *trims) begun(mt *table, s *shard) bool {
	for _, g := range t.groups() {
		if t.place(g, mt, s).IsZero() {
			return false
		}
	}
	return true
}

// wrote looks at what is written about streams.
func (t *trims) wrote(who string, in *table, key store.Key, old, now value.Item) {
	if t == nil {
		return
	}
	t.waken(who, refName(store.Ref{Table: in.Name, Key: key}))
	if in.Name != book.TableName {
		return
	}
	if now == nil {
		t.forgotten(who, key, old)
		return
	}
	switch book.Kind(key.Partition.Text()) {
	case book.KindBook, book.KindList:
		t.pruned(who, key, old, now)
		t.overtakes(now)
	case book.KindSet:
		t.overtakes(now)
	case book.KindCheckpoint:
		t.moved(who, key, t.saved(old), t.saved(now))
	case book.KindDead:
		if old == nil && now.Get("kind").Text() == string(runner.DeadGap) {
			t.said(who, now)
		}
	case book.KindLease:
		t.taken(who, key, old, now)
	}
}

// overtakes looks at the positions up to which a row has counted.
func (t *trims) overtakes(row value.Item) {
	for s, gaps := range t.named {
		for _, mt := range t.model.Tables {
			in := t.base.tables[mt.Name]
			p := events.PositionFrom(row.Get(book.Lane(runner.Lane(mt.Name, s.ID))))
			for _, g := range gaps {
				t.overtaken = t.overtaken || slices.Contains(in.shards, s) && !g.before.IsZero() && p.Compare(g.before) >= 0 && t.place(runner.GroupRows, in, s).Compare(g.after) <= 0
			}
		}
	}
}

// moved holds what was counted against what lies between the old place and the new.
func (t *trims) moved(who string, key store.Key, old, now book.CheckpointRow) {
	if now.Hold < old.Hold {
		t.fail(Reordered, "position: %s moved %s after another process had taken it over: %+v was %+v", who, key.Sort.Text(), now, old)
	}
	table, id := book.ShardOf(key.Sort.Text())
	s := t.base.tables[table].shard(id)
	from, to := s.upTo(old.At), s.upTo(now.At)
	n := counted(now) - counted(old)
	if n > 0 {
		t.reach("a place is saved")
	}
	if now.Done && slices.ContainsFunc(t.groups(), func(g string) bool { return !t.saved(t.checkpoint(g, t.base.tables[table], s)).Done }) {
		t.reach("a shard is done for one group")
	}
	lost := to - from - n
	most := 0
	for i := from; i < to; i++ {
		if t.in(s, s.records[i].Position) {
			most++
		}
	}
	if lost < 0 || lost > most {
		t.fail(Unaccounted, "unaccounted: %s moved %s over %d records and counted %d, with %d in gaps that were named", who, key.Partition.Text()+"|"+key.Sort.Text(), to-from, n, most)
	}
	t.missed[key.Partition.Text()+"|"+key.Sort.Text()] += max(lost, 0)
}

// forgotten is that something of a shard goes for good: of one that is over.
func (t *trims) forgotten(who string, key store.Key, old value.Item) {
	if book.Kind(key.Partition.Text()) != book.KindCheckpoint {
		return
	}
	table, id := book.ShardOf(key.Sort.Text())
	if s := t.base.tables[table].shard(id); !s.gone {
		t.fail(Lost, "retire: %s forgets shard %s, which is there: %s", who, id, plain(old))
	}
	t.counted["shards that are over"]++
	t.retired[key.Partition.Text()+"|"+key.Sort.Text()] = old
}

// pruned says that a position of a shard leaves a row only when nothing of the shard
// can come again: its checkpoints are gone.
func (t *trims) pruned(who string, key store.Key, old, now value.Item) {
	for _, lane := range leftLanes(old, now) {
		t.counted["positions that leave books"]++
		begun := t.some(func(g string, in *table, s *shard) bool {
			return runner.Lane(in.Name, s.ID) == lane && (!s.gone || t.base.tables[book.TableName].get(book.Checkpoint(t.model.Name, g, in.Name, s.ID).Key) != nil)
		})
		if begun {
			t.fail(Lost, "retire: %s forgets in %s the position of a shard that may come again: %s", who, key.Partition.Text(), plain(old))
		}
	}
}

// said looks at a gap that is named.
func (t *trims) said(who string, row value.Item) {
	for _, mt := range t.model.Tables {
		in := t.base.tables[mt.Name]
		for _, s := range in.shards {
			if row.Get("target").Text() != fmt.Sprintf("shard %s of %s", s.ID, mt.Name) {
				continue
			}
			g := gap{after: events.PositionFrom(row.Get(book.Position))}
			toEnd := strings.HasSuffix(row.Get("source").Text(), "the end of the shard") // as far as it saw
			if s.trimmed < len(s.records) && !s.gone && !toEnd {
				g.before = s.records[s.trimmed].Position
			}
			t.named[s] = append(t.named[s], g)
			t.counted["gaps"]++
			t.reach("a gap is named")
			if slices.ContainsFunc(t.named[s], func(o gap) bool { return o.after == g.after && o.before != g.before }) {
				t.reach("a gap that grew is named")
			}
			for _, n := range t.nodes {
				if n.host == nil || !strings.HasPrefix(who, n.name+"/") {
					continue
				}
				if t.might(TwoWorkers, 5) { // before it has read on
					n.stall()
				}
				if n.host.kept[mt.Name+"|"+s.ID].Compare(g.after) > 0 {
					t.fail(Lost, "spool: %s names a gap of shard %s after %v, which its disk had up to %v", who, s.ID, g.after, n.host.kept[mt.Name+"|"+s.ID])
				}
			}
			missing := 0
			for _, group := range t.groups() {
				place := t.place(group, in, s)
				for _, r := range s.records[:s.trimmed] {
					if g.has(r.Position) && r.Position.Compare(place) > 0 {
						missing++
					}
				}
			}
			if missing == 0 && !s.gone {
				t.fail(Unaccounted, "gap: %s names one of shard %s after %v, where everything is counted", who, s.ID, g.after)
			}
			return
		}
	}
	t.fail(Unaccounted, "gap: %s names one of no shard: %s", who, plain(row))
}

// taken holds a lease that is taken against what all others believe to have.
func (t *trims) taken(who string, key store.Key, old, now value.Item) {
	was, err := book.DecodeLease(old)
	is, bad := book.DecodeLease(now)
	if err = errors.Join(err, bad); err != nil {
		t.fail(Lost, "lease: %v", err)
	}
	if is.Owner == "" || was.Hold == is.Hold {
		return
	}
	table, id := book.ShardOf(key.Sort.Text())
	for _, n := range t.nodes {
		if n.reader != nil && n.name != is.Owner && n.reader.Tenure(table, id) != 0 {
			t.fail(Doubled, "lease: %s takes shard %s while %s has it", who, id, n.name)
		}
	}
	for _, n := range t.nodes {
		if n.reader != nil && n.name == was.Owner {
			n.lost[t.base.tables[table].shard(id)] = true
		}
	}
	if in := t.base.tables[table]; was.Owner != "" && t.begun(in, in.shard(id)) {
		t.reach("a shard is taken over, with a place")
	}
	t.stir(was.Owner)
}

func (g gap) has(p events.Position) bool {
	return p.Compare(g.after) > 0 && (g.before.IsZero() || p.Compare(g.before) < 0)
}

func (t *trims) in(s *shard, p events.Position) bool {
	return slices.ContainsFunc(t.named[s], func(g gap) bool { return g.has(p) })
}

// behind are the records of a shard that a group has not passed.
func (w *world) behind(group string, t *table, s *shard) []events.Record {
	return s.records[s.upTo(w.place(group, t, s)):]
}

// passed reports whether a group is at the end of a shard, or at a gap that goes
// to it.
func (w *world) passed(group string, in *table, s *shard) bool {
	return !slices.ContainsFunc(w.behind(group, in, s), func(r events.Record) bool { return w.trims == nil || !w.trims.in(s, r.Position) })
}

// lost is how many records of a shard a group never counts, all of them in gaps.
func (t *trims) lost(group string, in *table, s *shard) int {
	if t == nil {
		return 0
	}
	ref := book.Checkpoint(t.model.Name, group, in.Name, s.ID)
	n := t.missed[ref.Key.Partition.Text()+"|"+ref.Key.Sort.Text()]
	for _, r := range t.behind(group, in, s) {
		if t.in(s, r.Position) {
			n++
		}
	}
	return n
}

// some reports whether something is so of a group in a shard.
func (w *world) some(is func(group string, in *table, s *shard) bool) bool {
	for _, mt := range w.model.Tables {
		in := w.base.tables[mt.Name]
		for _, s := range in.shards {
			if slices.ContainsFunc(w.groups(), func(g string) bool { return is(g, in, s) }) {
				return true
			}
		}
	}
	return false
}

// gaps reports whether records are missing for good, or their effects.
func (t *trims) gaps() bool {
	return t != nil && (t.overtaken || t.some(func(g string, in *table, s *shard) bool { return t.lost(g, in, s) > 0 }))
}

// caughtUp reports whether every group is through with every shard.
func (t *trims) caughtUp() bool {
	return !t.some(func(g string, in *table, s *shard) bool { return !t.passed(g, in, s) })
}

func (t *table) shard(id string) *shard {
	i := slices.IndexFunc(t.shards, func(s *shard) bool { return s.ID == id })
	return t.shards[i]
}
