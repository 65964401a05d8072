package owntable

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"weir/internal/contribution"
	"weir/internal/events"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// A build (package build) fills new ledgers for all tallies of an entity while consumers
// apply the stream. Its rows:
//
//	catalog|MODEL         g:GEN      which builds there are, and their states
//	build|MODEL           s GEN|SEG  the fence and the progress of one segment's scan
//	check|MODEL|rows      s SHARD    b, f:GEN and h:GEN: the shard's fence, its floors and its cuts
//	ledger|MODEL#GEN|ROW  s ""       the ledger of a target in this generation
//	mark|MODEL#GEN|ROW    s HASH     the amounts that a source row has added to that ledger
//	dead|MODEL#GEN        s ID       dead letters of the generation
//
// GEN is the number of the generation: by how often the catalog was written when the build
// was announced, so no two builds of a model share a row, and none is 1, the number of the
// ledgers that no build made. The catalog has about 60 bytes for
// each build that is not forgotten. A segment's row has about 200 bytes and goes with the
// build. A mark has about 200 bytes and two keys; it stays as long as its source row adds
// something to the target, and expires afterwards. A build that has handed over
// (contribution.HandOver) has none.

const (
	buildsEntry = "g:" // of the catalog, and the generation: "STATE SINCE ANNOUNCED BASE ENTITY"; STATE may have "/AT:AFTER/PASSED/OVER" of the hand-over
	viewAttr    = "b"  // of a shard: the view that a batch must have at least
	floorAttr   = "f:" // of a shard, and the generation: the floor
	cutAttr     = "h:" // likewise: the cut
	amountsAttr = "c"
	sourceTable = "o"
	sourceKey   = "ok"
	targetTable = "t"
	targetKey   = "tk"
)

// BuildState is the state of a generation.
type BuildState string

// The states. Readers see a generation from BuildShowing on.
const (
	BuildBuilding BuildState = "building" // consumers count beside the scan
	BuildShowing  BuildState = "showing"  // the scan is over; consumers show it, and rows that are there are being shown
	BuildLive     BuildState = "live"     // all targets show it; it is not audited yet
	BuildVerified BuildState = "verified" // live and audited
	BuildDropped  BuildState = "dropped"  // replaced or aborted; its rows are being removed
)

// IsShown reports whether targets show a generation in this state.
func (s BuildState) IsShown() bool {
	return s == BuildShowing || s == BuildLive || s == BuildVerified
}

// Build is one generation of the ledgers of an entity's rows.
type Build struct {
	Generation int64
	Entity     string // of the targets
	State      BuildState
	Since      time.Time // of the state
	Announced  time.Time
	// Base is the version before the first one of each ledger. It is above all versions
	// that ledgers of older generations reach while readers may still show these.
	Base int64
	// HandOver is how far the ledgers have gone over from marks to positions.
	HandOver contribution.HandOver
}

// Ledgers returns the name under which the rows of the generation stand in the own table,
// in place of the model's.
func (b Build) Ledgers(model string) string {
	return model + "#" + strconv.FormatInt(b.Generation, 10)
}

// buildFrom reads an entry of a catalog that Build.attr wrote. ok is false for anything else, also
// for a state that a newer version may have: the catalog is then refused, never read in part.
func buildFrom(of, text string) (b Build, ok bool) {
	f := strings.SplitN(text, " ", 5)
	if len(f) != 5 {
		return b, false
	}
	n, err := strconv.ParseInt(of, 10, 64)
	since, bad := strconv.ParseInt(f[1], 10, 64)
	announced, worse := strconv.ParseInt(f[2], 10, 64)
	base, not := strconv.ParseInt(f[3], 10, 64)
	state, over, _ := strings.Cut(f[0], "/")
	handOver, known := handOverFrom(over)
	b = Build{Base: base, Generation: n, State: BuildState(state), HandOver: handOver, Since: time.Unix(since, 0).UTC(), Announced: time.Unix(announced, 0).UTC(), Entity: f[4]}
	known = known && (b.State.IsShown() || b.State == BuildBuilding || b.State == BuildDropped)
	return b, err == nil && bad == nil && worse == nil && not == nil && base > 0 && known && n > 0
}

// attr is the entry of a build in the catalog. Times are in seconds; an entity's name comes last,
// since it may have any character.
func (b Build) attr() value.Attr {
	text := fmt.Sprintf("%s%s %d %d %d %s", b.State, handOverText(b.HandOver), b.Since.Unix(), b.Announced.Unix(), b.Base, b.Entity)
	return newAttr(buildsEntry+strconv.FormatInt(b.Generation, 10), value.OfString(text))
}

// handOverFrom decodes a hand-over: its times, as far as they have come. A program that
// does not know of it takes it for a part of the state, and refuses the catalog.
func handOverFrom(text string) (h contribution.HandOver, ok bool) {
	if text == "" {
		return h, true
	}
	times := strings.Split(text, "/")
	var after string
	if times[0], after, ok = strings.Cut(times[0], ":"); ok {
		var err error
		if h.After, err = events.ParsePosition(after); err != nil {
			return h, false
		}
	}
	for i, to := range []*time.Time{&h.At, &h.Passed, &h.Over} {
		if i >= len(times) {
			break
		}
		n, err := strconv.ParseInt(times[i], 10, 64)
		if err != nil {
			return h, false
		}
		*to = time.Unix(n, 0).UTC()
	}
	return h, len(times) <= 3
}

// handOverText is a hand-over behind the state of its build: "" before the audit has ended.
func handOverText(h contribution.HandOver) (text string) {
	for i, t := range []time.Time{h.At, h.Passed, h.Over} {
		if t.IsZero() {
			break
		}
		if text += "/" + strconv.FormatInt(t.Unix(), 10); i == 0 && !h.After.IsZero() {
			text += ":" + h.After.String()
		}
	}
	return text
}

// Builds are a model's builds, by generation.
type Builds []Build

// Of returns the generation that targets of an entity show, and the one that is being
// built. The state is "" where there is none.
func (bs Builds) Of(entity string) (shown, building Build) {
	for _, b := range bs {
		switch {
		case b.Entity != entity:
		case b.State.IsShown():
			shown = b
		case b.State == BuildBuilding:
			building = b
		}
	}
	return shown, building
}

// Counting returns the builds that consumers count in.
func (bs Builds) Counting() (out []Build) {
	return seq.Where(bs, func(b Build) bool { return b.State != BuildDropped })
}

// Generations returns the numbers of those builds.
func (bs Builds) Generations() (out []int64) {
	return seq.Map(bs.Counting(), func(b Build) int64 { return b.Generation })
}

// FenceOf decodes the fence of a checkpoint, nil if the checkpoint does not exist. The
// error wraps ErrRow.
func FenceOf(row value.Item) (contribution.Fence, error) { return fenceIn(row, checkDo) }

// fenceIn decodes the fence of a shard's row. do is the remedy if it cannot be read.
func fenceIn(row value.Item, do string) (f contribution.Fence, err error) {
	if !row.Has(viewAttr) {
		return f, nil
	}
	if f.View, err = decodeInt(row, viewAttr, 1, do); err != nil {
		return f, err
	}
	f.Floors, f.Cuts = map[int64]events.Position{}, map[int64]events.Position{}
	for _, a := range row {
		to := f.Floors
		of, is := strings.CutPrefix(a.Name, floorAttr)
		if !is {
			to = f.Cuts
			of, is = strings.CutPrefix(a.Name, cutAttr)
		}
		if !is {
			continue
		}
		n, bad := strconv.ParseInt(of, 10, 64)
		if bad != nil {
			return f, unreadableError(row, a.Name, "named after a generation", do)
		}
		if a.Value.Kind() == value.Null { // the shard had no record that was applied
			to[n] = events.Position{}
			continue
		}
		if to[n], err = decodePosition(row, a.Name, do); err != nil {
			return f, err
		}
	}
	return f, nil
}

// TakeFence fences a checkpoint, on condition that neither its fence nor its position, at,
// has changed since they were read.
func TakeFence(ref ShardRef, was, next contribution.Fence, at events.Position) store.Write {
	w := store.Write{Ref: ref.Ref, If: store.Cond{{unmovedTest(at)}, {{Attr: viewAttr, Is: store.Absent}}}}
	if was.View > 0 {
		w.If[1] = equalTest(viewAttr, was.View)
	}
	w.Ops = append(append(ref.namingOps(), addTo(checkMoves, 1)), fenceOps(was, next)...)
	for _, n := range slices.Sorted(maps.Keys(next.Floors)) {
		is := value.Value{}
		if cut, there := was.Cuts[n]; there {
			is = placeOf(cut)
		}
		w.If = append(w.If, []store.Test{store.AsRead(cutName(n), is)})
	}
	return w
}

// fenceOps are the operations that make a row's fence another one.
func fenceOps(was, next contribution.Fence) []store.Op {
	ops := []store.Op{setAttr(viewAttr, value.OfInt(next.View))}
	taken := func(name func(int64) string, was, next map[int64]events.Position) {
		ops = append(ops, seq.Map(slices.Sorted(maps.Keys(next)), func(n int64) store.Op { return setAttr(name(n), placeOf(next[n])) })...)
		for _, n := range slices.Sorted(maps.Keys(was)) {
			if _, left := next[n]; !left {
				ops = append(ops, removeAttr(name(n)))
			}
		}
	}
	taken(floorName, was.Floors, next.Floors)
	taken(cutName, was.Cuts, next.Cuts)
	return ops
}

// placeOf is a floor or a cut as a checkpoint has it.
func placeOf(p events.Position) value.Value {
	if p.IsZero() {
		return value.OfNull()
	}
	return p.Value()
}

// floorName is the attribute of a checkpoint with the floor of a generation.
func floorName(generation int64) string { return floorAttr + strconv.FormatInt(generation, 10) }

// cutName is the attribute of a checkpoint with the cut of a generation.
func cutName(generation int64) string { return cutAttr + strconv.FormatInt(generation, 10) }

// UnderView adds to the write of a checkpoint the condition that its fence admits a batch with
// this version of the view.
func UnderView(view int64, w store.Write) store.Write {
	w.If = append(slices.Clip(w.If), []store.Test{{Attr: viewAttr, Is: store.Absent}, {Attr: viewAttr, Is: store.Le, Value: value.OfInt(view)}})
	return w
}

// Contribution is a mark with its ledger and source row.
type Contribution struct {
	contribution.Mark
	Source, Target store.Ref
	SourceKey      value.Item // key attributes
	TargetKey      value.Item
}

const contributionDo = "run projector build MODEL again"

// DecodeContribution decodes the mark of a contribution, nil if there is none. Of the rows
// that it names it sets the tables and the key attributes. The error wraps ErrRow.
func DecodeContribution(row value.Item) (c Contribution, err error) {
	if row == nil {
		return c, nil
	}
	if c.Version, err = decodeInt(row, Count, 1, contributionDo); err != nil {
		return c, err
	}
	if c.Mark.Position, err = decodePosition(row, Position, contributionDo); err != nil {
		return c, err
	}
	if v := row.Get(amountsAttr); v.Kind() == value.Map {
		c.Amounts = v.Item()
	} else if !v.IsMissing() {
		return c, unreadableError(row, amountsAttr, "a map of numbers", contributionDo)
	}
	for _, a := range c.Amounts {
		if a.Value.Kind() != value.Number {
			return c, unreadableError(row, amountsAttr, "a map of numbers", contributionDo)
		}
	}
	c.Source.Table, c.Target.Table = row.Get(sourceTable).Text(), row.Get(targetTable).Text()
	c.SourceKey, c.TargetKey = row.Get(sourceKey).Item(), row.Get(targetKey).Item()
	return c, nil
}

// Becomes writes the mark of a contribution, on condition that it is as it was read. A mark
// of nothing expires at the given time.
func (c Contribution) Becomes(at store.Ref, next contribution.Mark, expiry value.Value) store.Write {
	w := store.Write{Ref: at, If: NotThere()}
	if c.Version > 0 {
		w.If = store.Cond{equalTest(Count, c.Version)}
	}
	attrs := append(RefItem(at), newAttr(Count, value.OfInt(next.Version)),
		newAttr(sourceTable, value.OfString(c.Source.Table)), newAttr(sourceKey, value.OfMap(c.SourceKey)),
		newAttr(targetTable, value.OfString(c.Target.Table)), newAttr(targetKey, value.OfMap(c.TargetKey)))
	if !next.Position.IsZero() {
		attrs = append(attrs, newAttr(Position, next.Position.Value()))
	}
	if next.Nothing() {
		attrs = append(attrs, newAttr(Expiry, expiry))
	} else {
		attrs = append(attrs, newAttr(amountsAttr, value.OfMap(value.NewItem(next.Amounts...))))
	}
	w.Put = value.NewItem(attrs...)
	return w
}

// SourceAttrs returns the attributes by which a row names the source row that it is of. key
// has the source row's key attributes.
func SourceAttrs(source store.Ref, key value.Item) []value.Attr {
	return []value.Attr{newAttr(sourceTable, value.OfString(source.Table)), newAttr(sourceKey, value.OfMap(key))}
}

// SourceOf returns the table and the key attributes of the source row that a row names, ""
// if it names none.
func SourceOf(row value.Item) (table string, key value.Item) {
	return row.Get(sourceTable).Text(), row.Get(sourceKey).Item()
}

// SegmentRow is the fence and the progress of the scan of one segment.
type SegmentRow struct {
	Owner  int64      `row:"e,1"`     // the fence: rises with each builder that takes the segment
	Plan   string     `row:"plan,0"`  // the plan of the scan; another plan begins at the beginning
	Cursor value.Item `row:"cursor"`  // key attributes after which it continues; nil at the beginning
	Table  int        `row:"i,0"`     // index of the table that the cursor is in
	Rows   int64      `row:"rows,0"`  // rows read
	Puts   int64      `row:"puts,0"`  // contributions put
	Unfit  int64      `row:"unfit,0"` // rows that some derivation cannot use
	Units  int64      `row:"wu,0"`    // write units used, by the documented rules
	Reads  int64      `row:"ru,0"`    // read units used
	Over   bool       `row:"over"`
	Free   bool       `row:"free"` // its builder has stopped, and said so
	// Taken and Saved are when its builder took it and saved it last, From is how many rows had
	// been read when it took it. So the pace of its work can be told, which rests do not slow.
	Taken time.Time `row:"ta,ms"`
	Saved time.Time `row:"sa,ms"`
	From  int64     `row:"from,0"`
}

// Segment refers to the row of a segment of a build's scan.
func Segment(model string, generation int64, pass string, segment int) store.Ref {
	return Ref("build|"+model, fmt.Sprintf("%d|%s|%06d", generation, pass, segment))
}

// Segments returns the partition key of a model's segments, and the prefix of the sort keys
// of a generation's.
func Segments(model string, generation int64) (partition, prefix string) {
	return "build|" + model, strconv.FormatInt(generation, 10) + "|"
}

// PassOf returns the name of the pass of which a row is a segment.
func PassOf(row value.Item) string {
	parts := strings.Split(row.Get(Sort).Text(), "|")
	return parts[min(1, len(parts)-1)]
}

const (
	segmentOwner = "e"
	segmentUnits = "wu"
	segmentReads = "ru"
	segmentFree  = "free"
	segmentDo    = "run projector build MODEL --abort, and then projector build MODEL"
)

// DecodeSegment decodes the row of a segment, nil if there is none. The error wraps ErrRow.
func DecodeSegment(row value.Item) (s SegmentRow, err error) {
	if row != nil {
		err = readTagged(row, &s, segmentDo)
	}
	return s, err
}

// Take takes a segment for a builder, on condition that no other took it since it was read.
func (s SegmentRow) Take(at store.Ref, now time.Time) (SegmentRow, store.Write) {
	next := s
	next.Owner++
	next.Free, next.Taken, next.Saved, next.From = false, now, now, s.Rows
	w := next.updateRow(at)
	w.If = NotThere()
	if s.Owner > 0 {
		w.If = store.Cond{equalTest(segmentOwner, s.Owner)}
	}
	return next, w
}

// Save stores how far a segment is, on condition that its builder still holds it.
func (s SegmentRow) Save(at store.Ref, now time.Time) store.Write {
	s.Saved = now
	w := s.updateRow(at)
	w.If = store.Cond{equalTest(segmentOwner, s.Owner)}
	return w
}

// Release says that the builder of a segment has stopped and which units it has used that no segment has, on
// condition that it still holds it.
func (s SegmentRow) Release(at store.Ref, units, reads int64) store.Write {
	return store.Write{
		Ref: at, If: store.Cond{equalTest(segmentOwner, s.Owner)},
		Ops: []store.Op{setAttr(segmentFree, value.OfBool(true)), addTo(segmentUnits, units), addTo(segmentReads, reads)},
	}
}

// HeldCheck is the check that the builder still holds a segment, for a transaction.
func (s SegmentRow) HeldCheck(at store.Ref) store.Write {
	return store.Write{Ref: at, Check: true, If: store.Cond{equalTest(segmentOwner, s.Owner)}}
}

// updateRow returns the update of a segment's row, without a condition. Its owner's generation is
// part of it, so that a builder that lost the segment can tell.
func (s SegmentRow) updateRow(at store.Ref) store.Write {
	s.Free = false
	return store.Write{Ref: at, Ops: store.AssignAll(writeTagged(s))}
}

// Marks returns the prefix of the partition keys of the marks of a model, or of a
// generation by its name.
func Marks(model string) string { return "mark|" + model + "|" }

// Partitions returns a function that reports whether a partition of the own table belongs
// to a generation, by its name.
func Partitions(generation string) func(partition string) bool {
	names := []string{
		Ledgers(generation), Marks(generation), Nodes(generation), ValueRows(generation), Facts(generation), SubscriberLists(generation),
		Dead(generation) + "|", "deadpart|" + generation + "|", Jobs(generation) + "|",
	}
	return func(partition string) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			return strings.HasPrefix(partition, name) || partition+"|" == name
		})
	}
}
