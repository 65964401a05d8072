package owntable

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"weir/internal/store"
	"weir/internal/value"
)

// The rows of move|MODEL and fill|MODEL hold how far a scan of a table is: of a migration
// by name, of a backfill by table. The scan writes its row after each page. A migration's
// row stays until the migration ends, a backfill's for ever; there is one for each, of a
// few hundred bytes.
const (
	scanCursor = "cursor" // the key after which it continues; absent at the beginning
	scanPlan   = "plan"
	scanCounts = "counts"
	scanOver   = "over" // it has reached the end
	scanOn     = "on"   // of a migration: rows that change are moved too
)

// ScanRow is how far a scan is.
type ScanRow struct {
	Plan   string     // the purpose of the scan; a scan for something else begins at the beginning
	Cursor value.Item // the key attributes after which it continues; nil at the beginning
	Counts map[string]int
	Over   bool // it has reached the end
	On     bool // the migration is on
}

// ScanFrom decodes the row of a scan, nil if there is none.
func ScanFrom(row value.Item) ScanRow {
	s := ScanRow{
		Plan: row.Get(scanPlan).Text(), Cursor: row.Get(scanCursor).Item(), Counts: map[string]int{},
		Over: row.Get(scanOver).Bool(), On: row.Get(scanOn).Bool(),
	}
	for _, a := range row.Get(scanCounts).Item() {
		n, _ := a.Value.Int64()
		s.Counts[a.Name] = int(n)
	}
	return s
}

// BeginScan stores that a scan for a plan begins and, with on, that a migration is on.
func BeginScan(at store.Ref, plan string, on bool) store.Write {
	ops := []store.Op{removeAttr(scanCursor), removeAttr(scanCounts), removeAttr(scanOver), setAttr(scanPlan, value.OfString(plan))}
	if on {
		ops = append(ops, setAttr(scanOn, value.OfBool(true)))
	}
	return store.Write{Ref: at, Ops: ops}
}

// Advance stores how far a scan is: its cursor or its end, and its counts. A crash leaves
// the old state or the new one.
func (s ScanRow) Advance(at store.Ref) store.Write {
	var counts []value.Attr
	for name, n := range s.Counts {
		counts = append(counts, value.Attr{Name: name, Value: value.OfInt(int64(n))})
	}
	ops := []store.Op{setAttr(scanCounts, value.OfMap(value.NewItem(counts...)))}
	if s.Over {
		ops = append(ops, removeAttr(scanCursor), setAttr(scanOver, value.OfBool(true)))
	} else {
		ops = append(ops, setAttr(scanCursor, value.OfMap(s.Cursor)))
	}
	return store.Write{Ref: at, Ops: ops}
}

// ForgetScan makes the next scan begin at the beginning. It leaves a migration on.
func ForgetScan(at store.Ref) store.Write {
	return store.Write{Ref: at, Ops: []store.Op{removeAttr(scanPlan), removeAttr(scanCursor), removeAttr(scanCounts), removeAttr(scanOver)}}
}

// The rows of seen|ROW hold the newest recorded removal of a row that a replay wrote: its
// mark in SeenMark and, if TTL removed the row, a digest of its content. There are as many as
// removals were replayed, until an operator has them forgotten up to a time (replay.Forget). The row
// of the table itself, without a key, then has the mark of that time.
const seenSwept = "swept"

// LeaveSeen stores the mark of a recorded removal. Unless always is set it never replaces a
// newer mark.
func LeaveSeen(row store.Ref, mark value.Value, always bool) store.Write {
	w := store.Write{Ref: ReplayRemoval(row), Ops: []store.Op{setAttr(SeenMark, mark), removeAttr(seenSwept)}}
	if !always {
		w.If = store.Cond{{{Attr: SeenMark, Is: store.Absent}, {Attr: SeenMark, Is: store.Lt, Value: mark}}}
	}
	return w
}

// LeaveSwept stores the mark of a row that TTL removes, and a digest of its content.
// It never replaces a newer mark.
func LeaveSwept(row store.Ref, mark value.Value, was value.Item) store.Write {
	return store.Write{
		Ref: ReplayRemoval(row), Ops: []store.Op{setAttr(SeenMark, mark), setAttr(seenSwept, Digest(was))},
		If: store.Cond{{{Attr: SeenMark, Is: store.Absent}, {Attr: SeenMark, Is: store.Le, Value: mark}}},
	}
}

// A replay's mark may be followed by a byte of flags. SeenSilent says that no recorded change made the row as it is,
// but an export, so the write adds nothing to a history; SeenLacking that the removal that follows does not.
const (
	SeenSilent = 1 << iota
	SeenLacking
	seenMarkBytes = 25
)

// IsSilent reports whether a change of a row was made by an export.
func IsSilent(old, new value.Item) bool {
	flags := func(it value.Item) (mark string, flags byte) {
		if mark = it.Get(SeenMark).Text(); len(mark) > seenMarkBytes {
			flags = mark[seenMarkBytes]
		}
		return mark, flags
	}
	was, had := flags(old)
	is, has := flags(new)
	return new == nil && had&SeenLacking != 0 || has&SeenSilent != 0 && was != is
}

// Forgotten refers to the mark of the time up to which removals of a table's rows were forgotten.
func Forgotten(table string) store.Ref { return ReplayRemoval(store.Ref{Table: table}) }

// Replayed is the note about replays on a table's row without a key, in µs: up to when they have sent the posts of feeds (in that of a
// model's first table), up to when they know the table, its newest full export, of which time it has records with sequence numbers,
// and without them, the last command's files, as a digest, and the times of incremental exports of which entries of a history were made.
type Replayed struct {
	Fed, Known, Full int64
	Placed, Timed    Times
	Last             int64
	Windows          []Times
}

const replayedWindows = "windows"

// Times is a stretch of time in µs, both ends included; 0 and 0 is none.
type Times struct{ From, To int64 }

// With returns the time from the earlier beginning to the later end.
func (s Times) With(o Times) Times {
	switch (Times{}) {
	case s:
		return o
	case o:
		return s
	}
	return Times{min(s.From, o.From), max(s.To, o.To)}
}

// Both returns the time that both have.
func (s Times) Both(o Times) Times {
	if both := (Times{max(s.From, o.From), min(s.To, o.To)}); both.From <= both.To {
		return both
	}
	return Times{}
}

func (r *Replayed) counters() map[string]*int64 {
	return map[string]*int64{
		"fed": &r.Fed, "known": &r.Known, "full": &r.Full, "last": &r.Last,
		"placedFrom": &r.Placed.From, "placedTo": &r.Placed.To, "timedFrom": &r.Timed.From, "timedTo": &r.Timed.To,
	}
}

// ReplayedOf reads it.
func ReplayedOf(row value.Item) (r Replayed) {
	for name, at := range r.counters() {
		*at, _ = strconv.ParseInt(row.Get(name).Text(), 10, 64)
	}
	_ = json.Unmarshal([]byte(row.Get(replayedWindows).Text()), &r.Windows)
	return r
}

// SetReplayed stores the values that are not 0.
func SetReplayed(table string, r Replayed) store.Write {
	w := store.Write{Ref: Forgotten(table)}
	if len(r.Windows) > 0 {
		text, _ := json.Marshal(r.Windows)
		w.Ops = append(w.Ops, setAttr(replayedWindows, value.OfString(string(text))))
	}
	all := r.counters()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if at := *all[name]; at != 0 {
			w.Ops = append(w.Ops, setAttr(name, value.OfInt(at)))
		}
	}
	return w
}

// SeenTable returns the table of the row whose removal a row of the own table marks; "" for any other row.
func SeenTable(row value.Item) string {
	text, ok := strings.CutPrefix(row.Get(Partition).Text(), "seen|")
	if !ok {
		return ""
	}
	if of, told := RowOf(text); told {
		return of.Table
	}
	table, _, _ := LongRowOf(text)
	return table
}

// ForgetSeen deletes the mark of a removal, on condition that it is as it was read.
func ForgetSeen(row value.Item) store.Write {
	return store.Write{
		Ref: Ref(row.Get(Partition).Text(), ""), Delete: true,
		If: store.Cond{{store.AsRead(SeenMark, row.Get(SeenMark))}},
	}
}

// Swept returns the digest of a row's content that TTL removed, Missing if a record removed
// the row.
func Swept(seen value.Item) value.Value { return seen.Get(seenSwept) }

// Digest returns the digest of a row, for comparing it with Swept.
func Digest(row value.Item) value.Value { return value.OfString(hashOf(value.AppendItem(nil, row))) }

// removeAttr is an operation that removes an attribute, and does nothing if it is absent.
func removeAttr(attr string) store.Op { return store.Op{Kind: store.Remove, Attr: attr} }
