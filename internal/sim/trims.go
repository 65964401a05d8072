package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// trims makes the streams of a world expire their records after a while, read or not, and
// checks what weir reports and counts: all records that are not counted lie in gaps that
// were reported, and a gap is reported only where records are missing. A nil trims expires
// nothing.
type trims struct {
	*world
	named  map[*shard][]gap
	missed map[string]int // by group and shard: how many records a position passed uncounted
}

// gap is a range of a shard, between two positions, where records are missing.
type gap struct{ after, before events.Position }

// forget expires some of the first records of shards. Mostly these have been read, if not
// applied: a sink may be slow. If nothing of a shard has been applied yet, nothing could
// tell that records are missing, and it expires none of them.
func (t *trims) forget() { t.each(t.shorten) }

// away stands for a day without any process of weir: records expire that no process has
// read, and some shards have closed.
func (t *trims) away() {
	t.each(func(in *table, s *shard) {
		if !t.place(in, s).IsZero() {
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

// strikes reports whether some of a shard's first records, of the first upTo, expire now.
func (t *trims) strikes(in *table, s *shard, upTo int) bool {
	return upTo > s.trimmed && !t.place(in, s).IsZero() && t.might(Trim, 40)
}

// shorten is forget for one shard.
func (t *trims) shorten(in *table, s *shard) {
	upTo, all := s.given, 0.05
	if t.open(in, s) { // a gap may grow
		all = 0.7
	}
	if t.sched.chance(all) {
		upTo = min(s.seen, len(s.records))
	}
	if n := t.sleeper(s); n != nil && t.sched.chance(0.8) { // it is to miss what others have applied
		upTo = t.applied(in, s)
	}
	if !t.strikes(in, s, upTo) {
		return
	}
	t.forgets(in, s, t.part(s, upTo-s.trimmed))
}

// part is how many of so many records expire: of a closed shard often all.
func (t *trims) part(s *shard, of int) int {
	if s.Closed && t.faults.dice.chance(0.5) {
		return of
	}
	return 1 + t.faults.dice.n(of)
}

// open reports whether a gap was reported that is not passed.
func (t *trims) open(in *table, s *shard) bool {
	all := t.named[s]
	return len(all) > 0 && s.upTo(all[len(all)-1].after) >= t.applied(in, s)
}

// forgets expires the next n records of a shard. A closed shard without records is no
// longer listed.
func (w *world) forgets(s *shard, n int) {
	s.trimmed += n
	s.gone = s.Closed && s.trimmed == len(s.records)
	w.note("world", fmt.Sprintf("%s forgets %d of %d, %d are read", s.ID, s.trimmed, len(s.records), s.given), nil)
}

// forgets expires the next n records of a shard and counts which states that reaches. It
// may wake a paused process where that does the most harm.
func (t *trims) forgets(in *table, s *shard, n int) {
	t.world.forgets(s, n)
	for i := range t.named[s] { // one that nothing has passed grows, and is still that one
		g := &t.named[s][i]
		if t.place(in, s) == g.after {
			t.reach("a gap that was named grows")
			g.before = s.left()
		}
	}
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
}

// sleeper is a process that is paused while another has taken over one of its shards, nil
// for none.
func (t *trims) sleeper(s *shard) *node {
	for _, n := range t.nodes {
		if n.lost[s] && slices.ContainsFunc(n.fibers, func(f *fiber) bool { return f.asleep > 0 }) {
			return n
		}
	}
	return nil
}

// rouse lets such a process go on soon when the records have expired that it would read
// next and others have applied.
func (t *trims) rouse(in *table, s *shard) {
	n := t.sleeper(s)
	if n == nil || s.trimmed > t.applied(in, s) {
		return
	}
	t.reach("a stream forgets what a sleeper reads next")
	for _, f := range n.fibers {
		f.asleep = min(f.asleep, t.sched.n(60))
	}
}

// wrote checks what is written about streams.
func (t *trims) wrote(who string, in *table, key store.Key, old, now value.Item) {
	if t == nil {
		return
	}
	t.waken(who, refName(store.Ref{Table: in.Name, Key: key}))
	if in.Name != owntable.TableName {
		return
	}
	if now == nil {
		t.forgotten(who, key, old)
		return
	}
	switch owntable.Kind(key.Partition.Text()) {
	case owntable.KindLedger, owntable.KindSubscribers:
		t.pruned(who, key, old, now)
	case owntable.KindCheckpoint:
		t.moved(who, key, t.saved(old), t.saved(now))
	case owntable.KindDead:
		if letter := owntable.LetterFrom(now); old == nil && letter.Kind == string(deadletter.Gap) {
			t.said(who, &letter)
		}
	case owntable.KindLease:
		t.taken(who, key, old, now)
	}
}

// moved compares what was counted with the records between the old position and the new.
func (t *trims) moved(who string, key store.Key, old, now owntable.CheckpointRow) {
	table, id := now.Table, now.Shard
	s := t.base.tables[table].shard(id)
	from, to := s.upTo(old.At), s.upTo(now.At)
	n := counted(now) - counted(old)
	if n > 0 {
		t.reach("a place is saved")
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

// forgotten checks that a checkpoint is removed only if its shard is over, and keeps its
// row.
func (t *trims) forgotten(who string, key store.Key, old value.Item) {
	if owntable.Kind(key.Partition.Text()) != owntable.KindCheckpoint {
		return
	}
	is := t.saved(old)
	table, id := is.Table, is.Shard
	if s := t.base.tables[table].shard(id); !s.gone {
		t.fail(Lost, "retire: %s forgets shard %s, which exists: %s", who, id, plain(old))
	}
	t.counted["shards that are over"]++
	t.retired[key.Partition.Text()+"|"+key.Sort.Text()] = old
}

// pruned checks that a position of a shard leaves a row only if no record of the shard can
// come again: its checkpoints must be gone.
func (t *trims) pruned(who string, key store.Key, old, now value.Item) {
	for _, shardKey := range leftShards(old, now) {
		t.counted["positions that leave ledgers"]++
		begun := t.some(func(in *table, s *shard) bool {
			return owntable.ShardKey(in.Name, s.ID) == shardKey && (!s.gone || t.base.tables[owntable.TableName].get(owntable.Checkpoint(t.model.Name, in.Name, s.ID).Key) != nil)
		})
		if begun {
			t.fail(Lost, "retire: %s forgets in %s the position of a shard that may come again: %s", who, key.Partition.Text(), plain(old))
		}
	}
}

// said checks a gap that is reported. One of a whole stream says that shards went unlisted for so long that first records may
// have expired, which is right whether they have or not.
func (t *trims) said(who string, letter *owntable.LetterRow) {
	if table, whole := strings.CutPrefix(letter.Target, "stream of "); whole && t.base.tables[table] != nil {
		t.unlisted(who, letter)
		return
	}
	for _, mt := range t.model.Tables {
		in := t.base.tables[mt.Name]
		for _, s := range in.shards {
			if letter.Target != fmt.Sprintf("shard %s of %s", s.ID, mt.Name) {
				continue
			}
			g := gap{after: letter.Position}
			if !strings.Contains(letter.Reason, "the end of the shard") { // as far as it saw
				g.before = s.left()
			}
			t.named[s] = append(t.named[s], g)
			t.counted["gaps"]++
			t.reach("a gap is named")
			for _, n := range t.nodes {
				if n.reader != nil && strings.HasPrefix(who, n.name+"/") && t.might(TwoWorkers, 5) { // before it has read on
					n.stall()
				}
			}
			missing := 0
			for _, r := range s.records[:s.trimmed] {
				if g.has(r.Position) && r.Position.Compare(t.place(in, s)) > 0 {
					missing++
				}
			}
			if missing == 0 && !s.gone {
				t.fail(Unaccounted, "gap: %s names one of shard %s after %v, where everything is counted", who, s.ID, g.after)
			}
			return
		}
	}
	t.fail(Unaccounted, "gap: %s names one of no shard: %s", who, letter.Target)
}

// unlisted checks a gap of a whole stream: it is said from a time on that is long ago.
func (t *trims) unlisted(who string, letter *owntable.LetterRow) {
	from, err := time.Parse("from "+time.RFC3339+" on", letter.Source)
	if t.counted["streams that went unlisted"]++; err != nil || letter.Time.Sub(from) < 23*time.Hour {
		t.fail(Unaccounted, "gap: %s names one of %s %s, until %v", who, letter.Target, letter.Source, letter.Time)
	}
}

// taken compares a lease that is taken with what other processes think that they have.
func (t *trims) taken(who string, key store.Key, old, now value.Item) {
	was, err := owntable.DecodeLease(old)
	is, bad := owntable.DecodeLease(now)
	if err = errors.Join(err, bad); err != nil {
		t.fail(Lost, "lease: %v", err)
	}
	if is.Owner == "" || was.Fence == is.Fence {
		return
	}
	for _, n := range t.nodes {
		if n.reader != nil && n.name != is.Owner && n.reader.Fence() != 0 {
			t.fail(Doubled, "lease: %s takes it while %s has it", who, n.name)
		}
		if n.reader != nil && n.name == was.Owner {
			t.each(func(_ *table, s *shard) { n.lost[s] = true })
		}
	}
	t.each(func(in *table, s *shard) {
		if was.Owner != "" && !t.place(in, s).IsZero() {
			t.reach("a shard is taken over, with a place")
		}
	})
	t.stir(was.Owner)
}

// left is the position of the first record that the stream has not forgotten, zero if there is none.
func (s *shard) left() events.Position {
	if s.gone || s.trimmed == len(s.records) {
		return events.Position{}
	}
	return s.records[s.trimmed].Position
}

// has reports whether a position lies in the gap.
func (g gap) has(p events.Position) bool {
	return p.Compare(g.after) > 0 && (g.before.IsZero() || p.Compare(g.before) < 0)
}

// in reports whether a position lies in a gap that was reported.
func (t *trims) in(s *shard, p events.Position) bool {
	return slices.ContainsFunc(t.named[s], func(g gap) bool { return g.has(p) })
}

// behind are the records of a shard that are not applied.
func (w *world) behind(t *table, s *shard) []events.Record {
	return s.records[s.upTo(w.place(t, s)):]
}

// passed reports whether a shard is applied to its end, or up to gaps that reach to the end of
// what the stream has forgotten.
func (w *world) passed(in *table, s *shard) bool {
	from := s.upTo(w.place(in, s))
	for i := from; i < len(s.records); i++ {
		if w.trims == nil || i >= s.trimmed || !w.trims.in(s, s.records[i].Position) {
			return false
		}
	}
	return true
}

// lost is how many records of a shard are never counted, all of them in gaps.
func (t *trims) lost(in *table, s *shard) int {
	if t == nil {
		return 0
	}
	ref := owntable.Checkpoint(t.model.Name, in.Name, s.ID)
	n := t.missed[ref.Key.Partition.Text()+"|"+ref.Key.Sort.Text()]
	for _, r := range t.behind(in, s) {
		if t.in(s, r.Position) {
			n++
		}
	}
	return n
}

// some reports whether a condition holds for any shard.
func (w *world) some(is func(in *table, s *shard) bool) bool {
	for _, mt := range w.model.Tables {
		in := w.base.tables[mt.Name]
		for _, s := range in.shards {
			if is(in, s) {
				return true
			}
		}
	}
	return false
}

// gaps reports whether records, or their effects, are missing for good.
func (t *trims) gaps() bool {
	return t != nil && t.some(func(in *table, s *shard) bool { return t.lost(in, s) > 0 })
}

// caughtUp reports whether every shard is passed.
func (t *trims) caughtUp() bool {
	return !t.some(func(in *table, s *shard) bool { return !t.passed(in, s) })
}

// shard returns the shard with an id, which must exist.
func (t *table) shard(id string) *shard {
	i := slices.IndexFunc(t.shards, func(s *shard) bool { return s.ID == id })
	return t.shards[i]
}
