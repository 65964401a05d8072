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

// expireFirst expires some of the first records of shards. Mostly these have been read, if not
// applied: a sink may be slow. If nothing of a shard has been applied yet, nothing could
// tell that records are missing, and it expires none of them.
func (t *trims) expireFirst() { t.eachShard(t.expireShard) }

// expireUnread stands for a day without any process of weir: records expire that no process has
// read, and some shards have closed.
func (t *trims) expireUnread() {
	t.eachShard(func(in *table, s *shard) {
		if !t.appliedPosition(in, s).IsZero() {
			t.maySplit(in, s, 10)
		}
		if upTo := len(s.records); t.mayExpire(in, s, upTo) {
			t.expireNext(in, s, t.partExpiring(s, upTo-s.trimmed))
		}
	})
}

func (t *trims) eachShard(do func(in *table, s *shard)) {
	for _, mt := range t.model.Tables {
		in := t.base.tables[mt.Name]
		for _, s := range in.shards {
			do(in, s)
		}
	}
}

// mayExpire reports whether some of a shard's first records, of the first upTo, expire now.
func (t *trims) mayExpire(in *table, s *shard, upTo int) bool {
	return upTo > s.trimmed && !t.appliedPosition(in, s).IsZero() && t.strikeWeighted(Trim, 40)
}

// expireShard is expireFirst for one shard.
func (t *trims) expireShard(in *table, s *shard) {
	upTo, all := s.given, 0.05
	if t.isGapOpen(in, s) { // a gap may grow
		all = 0.7
	}
	if t.sched.chance(all) {
		upTo = min(s.seen, len(s.records))
	}
	if n := t.findSleeper(s); n != nil && t.sched.chance(0.8) { // it is to miss records that others have applied
		upTo = t.appliedRecords(in, s)
	}
	if !t.mayExpire(in, s, upTo) {
		return
	}
	t.expireNext(in, s, t.partExpiring(s, upTo-s.trimmed))
}

// partExpiring is how many of so many records expire: of a closed shard often all.
func (t *trims) partExpiring(s *shard, of int) int {
	if s.Closed && t.faults.dice.chance(0.5) {
		return of
	}
	return 1 + t.faults.dice.n(of)
}

// isGapOpen reports whether a gap was reported that is not passed.
func (t *trims) isGapOpen(in *table, s *shard) bool {
	all := t.named[s]
	return len(all) > 0 && s.upTo(all[len(all)-1].after) >= t.appliedRecords(in, s)
}

// expireRecords expires the next n records of a shard. A closed shard without records is no
// longer listed.
func (w *world) expireRecords(s *shard, n int) {
	s.trimmed += n
	s.gone = s.Closed && s.trimmed == len(s.records)
	w.traceStep("world", fmt.Sprintf("%s forgets %d of %d, %d are read", s.ID, s.trimmed, len(s.records), s.given), nil)
}

// expireNext expires the next n records of a shard and counts which states that reaches. It
// may wake a paused process where that does the most harm.
func (t *trims) expireNext(in *table, s *shard, n int) {
	t.world.expireRecords(s, n)
	for i := range t.named[s] { // one that nothing has passed grows, and is still that one
		g := &t.named[s][i]
		if t.appliedPosition(in, s) == g.after {
			t.countReached("a gap that was named grows")
			g.before = s.firstPosition()
		}
	}
	switch {
	case s.trimmed <= t.appliedRecords(in, s):
	case s.gone && s.given < s.trimmed:
		t.countReached("a shard is gone that is not read")
	case s.gone:
		t.countReached("a shard is gone that is not applied")
	default:
		t.countReached("a stream forgets what is not applied")
	}
	t.rouseSleeper(in, s)
}

// findSleeper is a process that is paused while another has taken over one of its shards, nil
// for none.
func (t *trims) findSleeper(s *shard) *node {
	for _, n := range t.nodes {
		if n.lost[s] && slices.ContainsFunc(n.fibers, func(f *fiber) bool { return f.asleep > 0 }) {
			return n
		}
	}
	return nil
}

// rouseSleeper lets such a process go on soon when the records have expired that it would read
// next and others have applied.
func (t *trims) rouseSleeper(in *table, s *shard) {
	n := t.findSleeper(s)
	if n == nil || s.trimmed > t.appliedRecords(in, s) {
		return
	}
	t.countReached("a stream forgets what a sleeper reads next")
	for _, f := range n.fibers {
		f.asleep = min(f.asleep, t.sched.n(60))
	}
}

// checkWrite checks a write about streams.
func (t *trims) checkWrite(who string, in *table, key store.Key, old, now value.Item) {
	if t == nil {
		return
	}
	t.wakePaused(who, refName(store.Ref{Table: in.Name, Key: key}))
	if in.Name != owntable.TableName {
		return
	}
	if now == nil {
		t.checkRetired(who, key, old)
		return
	}
	switch owntable.Kind(key.Partition.Text()) {
	case owntable.KindLedger, owntable.KindSubscribers:
		t.checkPruned(who, key, old, now)
	case owntable.KindCheckpoint:
		t.checkMove(who, key, t.decodeCheckpoint(old), t.decodeCheckpoint(now))
	case owntable.KindDead:
		if letter := owntable.LetterFrom(now); old == nil && letter.Kind == string(deadletter.Gap) {
			t.checkGap(who, &letter)
		}
	case owntable.KindLease:
		t.checkLease(who, key, old, now)
	}
}

// checkMove compares the counted records with those between the old position and the new.
func (t *trims) checkMove(who string, key store.Key, old, now owntable.CheckpointRow) {
	table, id := now.Table, now.Shard
	s := t.base.tables[table].shard(id)
	from, to := s.upTo(old.At), s.upTo(now.At)
	n := recordsCounted(now) - recordsCounted(old)
	if n > 0 {
		t.countReached("a place is saved")
	}
	lost := to - from - n
	most := 0
	for i := from; i < to; i++ {
		if t.isInGap(s, s.records[i].Position) {
			most++
		}
	}
	if lost < 0 || lost > most {
		t.addFailure(Unaccounted, "unaccounted: %s moved %s over %d records and counted %d, with %d in gaps that were named", who, key.Partition.Text()+"|"+key.Sort.Text(), to-from, n, most)
	}
	t.missed[key.Partition.Text()+"|"+key.Sort.Text()] += max(lost, 0)
}

// checkRetired checks that a checkpoint is removed only if its shard is over, and keeps its
// row.
func (t *trims) checkRetired(who string, key store.Key, old value.Item) {
	if owntable.Kind(key.Partition.Text()) != owntable.KindCheckpoint {
		return
	}
	is := t.decodeCheckpoint(old)
	table, id := is.Table, is.Shard
	if s := t.base.tables[table].shard(id); !s.gone {
		t.addFailure(Lost, "retire: %s forgets shard %s, which exists: %s", who, id, plainText(old))
	}
	t.counted["shards that are over"]++
	t.retired[key.Partition.Text()+"|"+key.Sort.Text()] = old
}

// checkPruned checks that a position of a shard leaves a row only if no record of the shard can
// come again: its checkpoints must be gone.
func (t *trims) checkPruned(who string, key store.Key, old, now value.Item) {
	for _, shardKey := range leftShards(old, now) {
		t.counted["positions that leave ledgers"]++
		begun := t.anyShard(func(in *table, s *shard) bool {
			return owntable.ShardKey(in.Name, s.ID) == shardKey && (!s.gone || t.base.tables[owntable.TableName].get(owntable.Checkpoint(t.model.Name, in.Name, s.ID).Key) != nil)
		})
		if begun {
			t.addFailure(Lost, "retire: %s forgets in %s the position of a shard that may come again: %s", who, key.Partition.Text(), plainText(old))
		}
	}
}

// checkGap checks a gap that is reported. One of a whole stream says that shards went unlisted for so long that first records may
// have expired, which is right whether they have or not.
func (t *trims) checkGap(who string, letter *owntable.LetterRow) {
	if table, whole := strings.CutPrefix(letter.Target, "stream of "); whole && t.base.tables[table] != nil {
		t.checkUnlisted(who, letter)
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
				g.before = s.firstPosition()
			}
			t.named[s] = append(t.named[s], g)
			t.counted["gaps"]++
			t.countReached("a gap is named")
			for _, n := range t.nodes {
				if n.reader != nil && strings.HasPrefix(who, n.name+"/") && t.strikeWeighted(TwoWorkers, 5) { // before it has read on
					n.stallFibers()
				}
			}
			missing := 0
			for _, r := range s.records[:s.trimmed] {
				if g.contains(r.Position) && r.Position.Compare(t.appliedPosition(in, s)) > 0 {
					missing++
				}
			}
			if missing == 0 && !s.gone {
				t.addFailure(Unaccounted, "gap: %s names one of shard %s after %v, where everything is counted", who, s.ID, g.after)
			}
			return
		}
	}
	t.addFailure(Unaccounted, "gap: %s names one of no shard: %s", who, letter.Target)
}

// checkUnlisted checks a gap of a whole stream: it is said from a time on that is long ago.
func (t *trims) checkUnlisted(who string, letter *owntable.LetterRow) {
	from, err := time.Parse("from "+time.RFC3339+" on", letter.Source)
	if t.counted["streams that went unlisted"]++; err != nil || letter.Time.Sub(from) < 23*time.Hour {
		t.addFailure(Unaccounted, "gap: %s names one of %s %s, until %v", who, letter.Target, letter.Source, letter.Time)
	}
}

// checkLease compares a lease that is taken with those that other processes think they have.
func (t *trims) checkLease(who string, key store.Key, old, now value.Item) {
	was, err := owntable.DecodeLease(old)
	is, bad := owntable.DecodeLease(now)
	if err = errors.Join(err, bad); err != nil {
		t.addFailure(Lost, "lease: %v", err)
	}
	if is.Owner == "" || was.Fence == is.Fence {
		return
	}
	for _, n := range t.nodes {
		if n.reader != nil && n.name != is.Owner && n.reader.Fence() != 0 {
			t.addFailure(Doubled, "lease: %s takes it while %s has it", who, n.name)
		}
		if n.reader != nil && n.name == was.Owner {
			t.eachShard(func(_ *table, s *shard) { n.lost[s] = true })
		}
	}
	t.eachShard(func(in *table, s *shard) {
		if was.Owner != "" && !t.appliedPosition(in, s).IsZero() {
			t.countReached("a shard is taken over, with a place")
		}
	})
	t.stirPaused(was.Owner)
}

// firstPosition is the position of the first record that the stream has not forgotten, zero if there is none.
func (s *shard) firstPosition() events.Position {
	if s.gone || s.trimmed == len(s.records) {
		return events.Position{}
	}
	return s.records[s.trimmed].Position
}

// contains reports whether a position lies in the gap.
func (g gap) contains(p events.Position) bool {
	return p.Compare(g.after) > 0 && (g.before.IsZero() || p.Compare(g.before) < 0)
}

// isInGap reports whether a position lies in a gap that was reported.
func (t *trims) isInGap(s *shard, p events.Position) bool {
	return slices.ContainsFunc(t.named[s], func(g gap) bool { return g.contains(p) })
}

// recordsBehind are the records of a shard that are not applied.
func (w *world) recordsBehind(t *table, s *shard) []events.Record {
	return s.records[s.upTo(w.appliedPosition(t, s)):]
}

// isPassed reports whether a shard is applied to its end, or up to gaps that reach to the end of
// what the stream has forgotten.
func (w *world) isPassed(in *table, s *shard) bool {
	from := s.upTo(w.appliedPosition(in, s))
	for i := from; i < len(s.records); i++ {
		if w.trims == nil || i >= s.trimmed || !w.trims.isInGap(s, s.records[i].Position) {
			return false
		}
	}
	return true
}

// lostRecords is how many records of a shard are never counted, all of them in gaps.
func (t *trims) lostRecords(in *table, s *shard) int {
	if t == nil {
		return 0
	}
	ref := owntable.Checkpoint(t.model.Name, in.Name, s.ID)
	n := t.missed[ref.Key.Partition.Text()+"|"+ref.Key.Sort.Text()]
	for _, r := range t.recordsBehind(in, s) {
		if t.isInGap(s, r.Position) {
			n++
		}
	}
	return n
}

// anyShard reports whether a condition holds for any shard.
func (w *world) anyShard(is func(in *table, s *shard) bool) bool {
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

// hasGaps reports whether records, or their effects, are missing for good.
func (t *trims) hasGaps() bool {
	return t != nil && t.anyShard(func(in *table, s *shard) bool { return t.lostRecords(in, s) > 0 })
}

// caughtUp reports whether every shard is passed.
func (t *trims) caughtUp() bool {
	return !t.anyShard(func(in *table, s *shard) bool { return !t.isPassed(in, s) })
}

// shard returns the shard with an id, which must exist.
func (t *table) shard(id string) *shard {
	i := slices.IndexFunc(t.shards, func(s *shard) bool { return s.ID == id })
	return t.shards[i]
}
