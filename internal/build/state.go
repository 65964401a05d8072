package build

import (
	"context"
	"slices"
	"time"

	"weir/internal/catalog"
	"weir/internal/contribution"
	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// State is how far a build is, by its rows in the own table: any program can read it, while
// another one builds. Counts are those of finished batches, so they are a little late.
type State struct {
	Entity     string
	Generation int64
	State      owntable.BuildState
	Since      time.Time // of the state
	// Announced is when the build was written into the catalog. Batches that began before it
	// may not count by mark, so the audit waits for a day after it.
	Announced time.Time
	Held      bool      // a builder has taken segments in this state and has not released them: it works, or was killed
	Rows      int64     // rows read in this state
	Of        int64     // approximately how many there are; 0 where the store does not know
	Puts      int64     // contributions put in this state
	Unfit     int64     // rows that a derivation of it cannot use, as the last scan of the source rows found them
	Pace      float64   // rows read in a second, while builders worked; 0 if it is not known yet
	Taken     int64     // how often builders have taken a segment, or saved one
	Saved     time.Time // when a builder last took a segment in this state, or saved one; zero for never
	Marks     bool      // it counts by marks, or has: it has ledgers or sets
	HandOver  contribution.HandOver
	Waits     int // until the hand-over has passed: shards that may have records to be counted by mark
	// Used is the write and read units that the build has used until now, in all its states. A builder that
	// was killed has used a little more. Of builds that one builder works at, only the sum is exact.
	Used    Progress
	here    Progress // of Used, the part of this state
	unmarks bool
}

// Expected returns the units that the build will have used when its state ends, if the rest of the rows takes as much
// as those until now; ok is false if that is not known.
func (s *State) Expected() (p Progress, ok bool) {
	if s.Rows == 0 || s.Of <= s.Rows {
		return Progress{}, false
	}
	more := float64(s.Of-s.Rows) / float64(s.Rows)
	p.Units = s.Used.Units + int64(more*float64(s.here.Units))
	p.Reads = s.Used.Reads + int64(more*float64(s.here.Reads))
	return p, true
}

// TimeLeft returns about how long the state lasts yet, if a builder goes on at the pace until now; 0
// if that is not known.
func (s *State) TimeLeft() time.Duration {
	if s.Pace == 0 || s.Of <= s.Rows {
		return 0
	}
	return time.Duration(float64(s.Of-s.Rows) / s.Pace * float64(time.Second))
}

// Idle is how long a build that is held may make no progress before others take its builder for gone.
const Idle = 2 * time.Minute

// PausedSince returns since when no builder works at a build whose work could go on, the zero time if one
// does. A build that no builder has begun in its state is given the time in which processes look for
// builds. So is none whose audit is not due, nor one that only removes its marks.
func (s *State) PausedSince(now time.Time) (since time.Time) {
	at, patience := s.Saved, Idle
	switch {
	case s.State != owntable.BuildBuilding && s.State != owntable.BuildShowing:
		return time.Time{}
	case s.Saved.IsZero():
		at, patience = s.Since, lookEvery
	case !s.Held:
		patience = 0
	}
	if now.Sub(at) < patience {
		return time.Time{}
	}
	return at
}

// States are the states of a model's builds.
type States []State

// Todo returns a build that can be worked at now, nil for none.
// It is the first in the list that has work. A live build has work when it is due to be audited
// (catalog.AuditAfter), and is not older than catalog.BuildLife.
func (all States) Todo(now time.Time) *State {
	for i := range all {
		switch s := &all[i]; {
		case s.State == owntable.BuildBuilding, s.State == owntable.BuildShowing:
			return s
		case s.State == owntable.BuildLive && now.Sub(s.Announced) >= catalog.AuditAfter && now.Sub(s.Announced) <= catalog.BuildLife:
			return s
		case s.unmarks:
			return s
		}
	}
	return nil
}

// lookEvery is how often builds are looked for that were announced elsewhere.
const lookEvery = time.Minute

// NextIn returns how long to wait until there may be something to do.
// It is at most lookEvery, since other programs may begin builds.
func (all States) NextIn(now time.Time) time.Duration {
	next := lookEvery
	for _, s := range all {
		if at := s.Announced.Add(catalog.AuditAfter).Sub(now); s.State == owntable.BuildLive && at > 0 {
			next = min(next, at)
		}
	}
	return next
}

// States returns the states of the builds that count, of those that the builder names.
// It reads the catalog, the segments and, while ledgers go over to positions, the checkpoints. It
// writes nothing, and may be called while others build.
func (b *Builder) States(ctx context.Context) (all States, err error) {
	b.countReads()
	row, err := b.Runner.Catalog.Row(ctx)
	if err != nil {
		return nil, err
	}
	for _, is := range row.Builds.Counting() {
		if !slices.Contains(b.Names, is.Entity) {
			continue
		}
		s := State{Entity: is.Entity, Generation: is.Generation, State: is.State, Since: is.Since, Announced: is.Announced, Marks: b.Runner.Catalog.Program().HasMarks(is.Entity), HandOver: is.HandOver, unmarks: canUnmark(is, b.Runner.Now())}
		if is.HandOver.Announced() && is.HandOver.Passed.IsZero() {
			if s.Waits, err = b.waitingShards(ctx, is); err != nil {
				return nil, err
			}
		}
		if err := b.segmentsOf(ctx, is, &s); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// LackingBuilds returns which of the builder's names need a build, or are being built.
func (b *Builder) LackingBuilds(ctx context.Context) (out []string, err error) {
	row, err := b.Runner.Catalog.Row(ctx)
	if err != nil {
		return nil, err
	}
	return seq.Where(b.Runner.Catalog.Program().LackingBuilds(row), func(e string) bool { return slices.Contains(b.Names, e) }), nil
}

// BegunHistories returns the history that the builder begins: no row tells it, and it is complete from
// then on.
func (b *Builder) BegunHistories(ctx context.Context) ([]string, error) {
	row, err := b.Runner.Catalog.Row(ctx)
	return b.Runner.Catalog.Program().BegunHistories(row), err
}

// segmentsOf adds up the segments of a build: rows and pace are of its state, units of all that it has done.
// Of is an estimate of the store, which may be hours old on DynamoDB; 0 says that it gives none.
func (b *Builder) segmentsOf(ctx context.Context, is owntable.Build, s *State) error {
	segments, unfit := map[string][]owntable.SegmentRow{}, map[string]int64{}
	_, passes := b.nextState(is)
	partition, prefix := owntable.Segments(b.Runner.Model.Name, is.Generation)
	q := store.Query{Table: owntable.TableName, Partition: value.OfString(partition), Sort: store.Range{Prefix: value.OfString(prefix)}}
	err := b.writeEach(ctx, q, func(row value.Item) ([]store.Write, error) {
		seg, err := owntable.DecodeSegment(row)
		used := Progress{Units: seg.Units, Reads: seg.Reads}
		s.Used.addUp(used)
		pass := owntable.PassOf(row)
		unfit[pass] += seg.Unfit
		if !hasPass(passes, pass) {
			return nil, err
		}
		segments[pass] = append(segments[pass], seg)
		s.here.addUp(used)
		s.Held = s.Held || !seg.Free
		s.Rows, s.Puts, s.Taken = s.Rows+seg.Rows, s.Puts+seg.Puts, s.Taken+seg.Owner
		if seg.Saved.After(s.Saved) {
			s.Saved = seg.Saved
		}
		return nil, err
	})
	if err != nil || len(passes) == 0 {
		return err
	}
	for _, n := range unfit { // passes that read the source rows find the same
		s.Unfit = max(s.Unfit, n)
	}
	work, spent := int64(0), time.Duration(0)
	for _, of := range segments {
		n, took := workedSoFar(of)
		work, spent = work+n, spent+took
	}
	if spent > 0 {
		s.Pace = float64(work) / spent.Seconds()
	}
	tables := b.sourceTables(is.Entity)
	if is.State == owntable.BuildVerified {
		tables = nil // the own table's rows are not counted
	}
	if e := b.Runner.Model.Entity(is.Entity); e != nil && is.State == owntable.BuildShowing {
		tables = []*store.Table{&e.Table.Table}
	}
	for _, t := range tables {
		id, err := b.Runner.Store.Identity(ctx, t.Name)
		if err != nil {
			return err
		}
		s.Of += id.Rows
	}
	return nil
}

// workedSoFar returns how many rows the last builder of a pass has read, and how long that took it.
// Each builder takes the first segment before all others.
func workedSoFar(segments []owntable.SegmentRow) (rows int64, took time.Duration) {
	for i := range segments {
		if s := &segments[i]; !s.Taken.Before(segments[0].Taken) && s.Rows > s.From {
			rows, took = rows+s.Rows-s.From, max(took, s.Saved.Sub(segments[0].Taken))
		}
	}
	return rows, took
}
