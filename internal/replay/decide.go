package replay

import (
	"math"
	"slices"
	"strings"

	"weir/internal/value"
)

// The rule of a row. The known state of a row is the image that it has and that of known; a record is a link
// from one image to another. decide returns the action of a record, and the known state afterwards. It does no I/O,
// and both ways of a replay, record by record and reduced, go by it.
//
// Records of a row come in the order of their positions and times (Arrangement) within one command. A record that
// comes in a later command than those after it changes no row; it fills a hole, if there is one, and
// history takes it by its own key.

// known is the recorded changes that were written into a row.
type known struct {
	seen  mark  // of the newest recorded change
	at    int64 // of the newest export, if the row is as it has it (ofExport)
	ever  bool  // something recorded was written here before
	flags byte
	// before has the images that the row had within the minute before its last one, the newest last.
	before []uint64
	// ids tell the records without sequence number of that minute.
	ids []uint64
	// first is the first recorded change that is known, and want the row as that found it. A change before it in a later
	// command is new.
	first   mark
	firstID uint64 // if it has no sequence number
	want    uint64
	// start is the image with which the moment of seen began, or startKnown.
	start uint64
	// holes are where records are or were missing.
	holes []hole
	swept value.Value // if a sweep removed the row, the digest of its content
}

// hole is a place at which records of a row are missing: the change after from left the row as have, and the one
// is at to found it as want. Where both are the same nothing is known to be missing.
type hole struct {
	from, to   mark
	have, want uint64
	ids        []uint64 // of the last changes that moved from and to, if they have no sequence numbers
	near       byte     // nearFrom, nearTo: that mark is an export's, so it is known to a minute
}

const (
	nearFrom = 1 << iota
	nearTo
)

// link is the part of a record about its row.
type link struct {
	mark
	id       uint64 // of a record without sequence number
	old, new digest // without derived values
	kind     linkKind
	note     byte // by the arrangement
	kept     bool // a history is made of the row's changes
	moved    bool // a migration has made or moved the row
}

// linkKind is the kind of a record: a change in a stream, or one of the rows of an export.
type linkKind uint8

const (
	aChange linkKind = iota
	aNet             // of an incremental export: the sum of several changes
	aRow             // of a full export, at its time; without an image, it lacks the row
	aBare            // of a data file without manifest: its time is not known
	aTwin            // a record that is there once more
)

// minute is how far the time of an export and the times of streams may be apart, in µs.
const minute = 60e6

// outcome is the effect of a record on its row.
type outcome uint8

const (
	skipped outcome = iota // the row has seen it
	nothing                // the row is as it should be, and nothing happened to it
	noted                  // the row stays, but more is known of it
	written
	removal // of the row, or of a row that was removed before
)

// verdict is the decision about a record.
type verdict struct {
	outcome outcome
	applied bool   // it changes its row
	told    bool   // no change of the row says so to history
	gap     string // why it does not follow from the row, "" if it does
}

// decideLink decides about a record where the row is now. Afterwards k is the known state once the row is written.
func (k *known) decideLink(l link, now digest) verdict {
	switch l.kind {
	case aTwin:
		return verdict{}
	case aNet, aRow, aBare:
		return k.decideExport(l, now)
	}
	switch at := k.placeOf(&l, now); at {
	case isSame:
		return verdict{told: true}
	case isSeen:
		return k.takeLate(l)
	case isBefore, reaches:
		k.start, k.flags = l.old.shortDigest(), k.flags&^apart
		k.seen, k.before = l.mark, append(k.before, l.old.shortDigest(), l.new.shortDigest())
		k.boundMinute(l)
		if at == reaches {
			k.noteExportChange(l, k.want == now.shortDigest())
			return verdict{outcome: noted, told: true}
		}
		if v := k.takeLate(l); v.outcome == noted {
			return v
		}
		to := mark{time: k.at}
		if k.flags&ofBare != 0 {
			to.time = math.MaxInt64
		}
		k.addHole(hole{from: l.mark, ids: []uint64{l.id}, to: to, have: l.new.shortDigest(), want: now.shortDigest(), near: nearTo})
		return verdict{outcome: noted, told: true, gap: notNext}
	}
	k.noteExportChange(l, k.seen == mark{} && l.old == now && l.compare(k.first) <= 0)
	v := verdict{gap: k.gapIn(l, now), applied: now != l.new}
	if v.gap != "" {
		h := k.holeTo(l.mark, now, l.old)
		h.ids = append(h.ids, l.id)
		k.addHole(h)
	}
	if k.startMoment(l, now); l.note >= noteCircle || k.flags&apart != 0 && k.start == l.new.shortDigest() {
		k.flags |= ambiguous
		if v.gap = notOrdered; l.note == noteCopies {
			v.gap = notDistinct
		}
	}
	switch {
	case l.new == digest{}:
		v.outcome = removal
	case !v.applied && l.old == l.new && v.gap == "":
		v.outcome = nothing
		return v
	default:
		v.outcome = written
	}
	v.told = !v.applied
	if k.noteWritten(l, now); l.kept && l.old != now { // the row's change is not the one that was recorded
		v.told = true
		k.flags |= silent
	}
	return v
}

// notNext is the gap behind a change that comes late.
const notNext = "the next change that is known does not begin with what it made: a change is missing"

// notOrdered is the gap in a moment whose changes come in several commands, or in no order, and lead back to where they begin. No
// record fills it.
const notOrdered = "nothing tells the order of this row's changes of one moment, which have no sequence numbers: " +
	"replay all of them in one file, in their order, into a new directory"

// notDistinct is the gap in a moment with equal changes that may be copies.
const notDistinct = "nothing tells whether equal changes of this row in one moment, without sequence number and eventID, are copies of one: " +
	"compare the row with its table"

// startMoment notes how the moment of a change began.
func (k *known) startMoment(l link, now digest) {
	switch {
	case k.ever && l.compare(k.seen) == 0:
		if l.note != noteChain {
			k.flags |= apart
		}
		return
	case k.ever && l.old == now:
		k.start = startKnown
	default:
		k.start = l.old.shortDigest()
	}
	k.flags &^= apart
}

// place is where a change is among the known ones.
type place uint8

const (
	isNext   place = iota
	isSame         // the row has it
	isSeen         // the row has it, or something after it
	isBefore       // it is before the row of an export, and others are between
	reaches        // it made the row of an export
)

// placeOf finds where a change belongs. Beside the row of an export time decides; within a minute of it, and within
// one moment of records without positions, the images are a chain.
func (k *known) placeOf(l *link, now digest) place {
	switch {
	case !k.ever:
		return isNext
	case l.position.IsZero() && slices.Contains(k.ids, l.id):
		return isSame
	case !l.position.IsZero() && !k.seen.position.IsZero() && l.position.Compare(k.seen.position) <= 0:
		return isSeen
	case k.flags&ofExport != 0 && (k.seen == mark{} || l.compare(k.seen) >= 0):
		return k.besideExport(l, now)
	}
	if c := l.compare(k.seen); c != 0 {
		if c < 0 {
			return isSeen
		}
		return isNext
	}
	mixed := l.position.IsZero() != k.seen.position.IsZero()
	if k.isMissed(l) || l.old != now && (mixed && k.hadImage(l.new, now) || k.isInFirst(l) && k.start == l.new.shortDigest()) {
		return isSeen
	}
	return isNext
}

// newestTime is that of the newest change.
func (k *known) newestTime() int64 { return max(k.seen.time, k.at) }

// besideExport is place where the row is as an export has it.
func (k *known) besideExport(l *link, now digest) place {
	apart := l.time - k.at
	switch {
	case k.flags&ofBare != 0:
	case apart < -minute:
		return isSeen
	case apart > minute:
		return isNext
	}
	switch {
	case l.old == now:
		return isNext
	case l.new == now:
		return reaches
	case k.flags&ofBare == 0 && l.time > k.at:
		return isNext
	}
	return isBefore
}

// gapIn compares the old image with the row in the store. It describes the gap, "" if
// there is none.
func (k *known) gapIn(l link, now digest) string {
	none := digest{}
	switch {
	case !k.ever && now == none, l.moved:
		return "" // the recording begins here for this row, or a migration has changed the row
	case l.old == now:
		return ""
	case l.old == none:
		return "an insert of a row that was there: its removal is missing"
	case now == none && !k.swept.IsMissing() && strings.HasPrefix(k.swept.Text(), l.old.text()):
		return "" // it expired here before the recording said more of it
	case now == none:
		return "a change of a row that was removed: its insertion is missing"
	}
	return "the old image is not the last one seen: a change is missing"
}

// noteWritten notes that a record was written, or that it removed the row.
func (k *known) noteWritten(l link, now digest) {
	next := known{seen: l.mark, ever: true, flags: k.flags & lasting, holes: k.holes, first: k.first, firstID: k.firstID, want: k.want, start: k.start}
	if !k.ever {
		next.first, next.firstID, next.want = l.mark, l.id, l.old.shortDigest()
		if l.kind != aChange {
			next.want, next.flags = l.new.shortDigest(), next.flags|byExport
		}
		if l.kind != aChange && !l.kept || l.kind == aBare {
			next.flags = k.flags&lasting | ofUnknown
		}
	}
	if k.ever && l.time-k.newestTime() <= minute {
		next.before, next.ids, next.seen.time = k.before, k.ids, max(l.time, k.seen.time)
	}
	if l.kind != aChange {
		next.seen, next.at, next.ids = k.seen, l.time, k.ids
	}
	if k.ever || now != (digest{}) {
		next.before = append(next.before, now.shortDigest())
	}
	if l.kind == aChange && l.old != now {
		next.before = append(next.before, l.old.shortDigest())
	}
	next.boundMinute(l)
	*k = next
}

// boundMinute bounds the records that are kept of a minute, and adds the id of a record without sequence number.
func (k *known) boundMinute(l link) {
	if l.position.IsZero() && l.kind == aChange {
		k.ids = append(k.ids, l.id)
	}
	k.ids = k.ids[max(0, len(k.ids)-mostIDs):]
	k.before = k.before[max(0, len(k.before)-mostBefore):]
}

// addHole adds a hole. Beyond so many they are one.
func (k *known) addHole(h hole) {
	if len(k.holes) == mostHoles {
		k.holes = slices.DeleteFunc(k.holes, func(h hole) bool { return h.have == h.want })
	}
	if len(k.holes) == mostHoles {
		last := &k.holes[mostHoles-1]
		last.to, last.want = h.to, h.want
		return
	}
	k.holes = append(k.holes, h)
}

// fillHole has a change fill a hole, or a part of it. It reports whether it is in one. With missing, holes in which nothing is known
// to be missing are left as they are.
func (k *known) fillHole(l link, missing bool) bool {
	for i := range k.holes {
		h := &k.holes[i]
		from, to := l.compare(h.from), l.compare(h.to)
		edge := from <= 0 || to >= 0
		same := from == 0 && l.position.IsZero() && l.old.shortDigest() == h.have && !slices.Contains(h.ids, l.id) && !missing // of one moment
		if from < 0 && !(h.near&nearFrom != 0 && h.from.time-l.time <= minute) || to > 0 && !(h.near&nearTo != 0 && l.time-h.to.time <= minute) ||
			(edge || missing) && h.have == h.want && !same || !l.position.IsZero() && (l.position == h.from.position || l.position == h.to.position) {
			continue
		}
		old, new := l.old.shortDigest(), l.new.shortDigest()
		switch {
		case old == h.have && to <= 0:
			if h.near&nearFrom != 0 {
				k.trimHoles(l)
			}
			h.have, h.from, h.near = new, l.mark, h.near&^nearFrom
			h.noteMove(l)
		case new == h.want && from >= 0:
			if h.want, h.to, h.near = old, l.mark, h.near&^nearTo; l.kind == aNet {
				h.want = h.have // an incremental export has all that happened before, in its window
			}
			h.noteMove(l)
		case edge, l.kind == aNet:
			continue
		case len(k.holes) < mostHoles:
			k.holes = append(k.holes, hole{from: l.mark, ids: append(slices.Clone(h.ids), l.id), to: h.to, have: new, want: h.want, near: h.near & nearTo})
			h = &k.holes[i]
			h.to, h.want, h.near = l.mark, old, h.near&nearFrom
			h.noteMove(l)
		}
		return true
	}
	return false
}

// closeHoles has the row of a full export close the holes that end before it, and the hole that it lies in if that ends with this
// row: the export has the result of the changes there. It reports whether there is such a hole.
func (k *known) closeHoles(l link) (closed bool) {
	for i := range k.holes {
		h := &k.holes[i]
		if h.have != h.want && (h.to.time < l.time-minute || h.want == l.new.shortDigest() && h.from.time <= l.time) {
			h.have, closed = h.want, true
		}
	}
	return closed
}

// noteExportChange takes a change that made the row of an export, or follows from it. With begins, the change is the first that is known,
// where the row of an export was that: it made this row; or it is the first of a stream, and its time is not behind the export's. If it
// comes again it is not compared with the export.
func (k *known) noteExportChange(l link, begins bool) {
	if begins && k.flags&byExport != 0 {
		k.first, k.firstID, k.want, k.flags = l.mark, l.id, l.old.shortDigest(), k.flags&^byExport
	}
	k.trimHoles(l)
	k.fillHole(l, true)
}

// trimHoles ends the holes before the row of an export at a change that made it or follows from it. They may reach beyond the change: the
// row may have been as the export has it more than once.
func (k *known) trimHoles(l link) {
	for i := range k.holes {
		if h := &k.holes[i]; h.near&nearTo != 0 && h.have == h.want && l.compare(h.to) <= 0 && l.compare(h.from) > 0 {
			h.to, h.near = l.mark, h.near&^nearTo
		}
	}
}

// noteMove notes the id of a change that moved from or to.
func (h *hole) noteMove(l link) {
	h.ids = append(h.ids, l.id)
	h.ids = h.ids[max(0, len(h.ids)-mostBefore):]
}

// isMissed reports whether a change ends a hole that ends in its moment, or begins it.
func (k *known) isMissed(l *link) bool {
	return slices.ContainsFunc(k.holes, func(h hole) bool {
		return h.have != h.want && l.compare(h.to) == 0 && (l.old.shortDigest() == h.have || l.new.shortDigest() == h.want)
	})
}

// isInFirst reports whether a change is of the first moment that is known, nothing after that is, and nothing there has a position.
func (k *known) isInFirst(l *link) bool {
	return l.position.IsZero() && k.first == l.mark && k.seen == l.mark
}

// isMissing reports whether a change is missing in some hole.
func (k *known) isMissing() bool {
	return k.flags&ambiguous != 0 || slices.ContainsFunc(k.holes, func(h hole) bool { return h.have != h.want })
}

// takeLate takes a change that comes behind others that were made after it.
func (k *known) takeLate(l link) verdict {
	was := k.isMissing()
	if l.position.IsZero() && l.compare(k.seen) == 0 {
		k.boundMinute(l)
	}
	if !k.fillHole(l, false) {
		return k.extendKnown(l)
	}
	v := verdict{outcome: noted, told: true}
	if !was && k.isMissing() {
		v.gap = notNext
	}
	return v
}

// extendKnown takes a change that the row has seen, or that comes before all that is known of it.
func (k *known) extendKnown(l link) verdict {
	before := l.compare(k.first)
	v := verdict{told: true}
	switch leads := l.new.shortDigest() == k.want; {
	case k.flags&ofUnknown != 0, before > 0, before == 0 && k.flags&byExport == 0 && !k.isInFirst(&l):
		return v
	case !leads:
		v.gap = notNext
		fallthrough
	default:
		h := hole{from: l.mark, ids: []uint64{k.firstID, l.id}, to: k.first, have: l.new.shortDigest(), want: k.want}
		if k.flags&byExport != 0 {
			h.near = nearTo
		}
		k.addHole(h)
	}
	if before == 0 {
		k.start = l.old.shortDigest()
	}
	k.first, k.firstID, k.want, k.flags, v.outcome = l.mark, l.id, l.old.shortDigest(), k.flags&^byExport, noted
	return v
}

// holeTo is the hole between the known changes and a mark.
func (k *known) holeTo(to mark, now, want digest) hole {
	h := hole{from: k.seen, to: to, have: now.shortDigest(), want: want.shortDigest()}
	if k.flags&ofExport != 0 && k.at >= k.seen.time {
		h.from, h.near = mark{time: k.at}, nearFrom
	}
	return h
}

// decideExport decides about a row of an export. Outside a minute around its time, time decides. Within it, the row is
// one of the images that the row had or has, or something is missing and the newest is right.
func (k *known) decideExport(l link, now digest) (v verdict) {
	none := digest{}
	lacks := l.kind == aRow && l.new == none
	// Exports know their times. Changes of a stream know theirs to a minute.
	near := k.seen != mark{} && max(l.time-k.seen.time, k.seen.time-l.time) <= minute
	switch {
	case !k.ever && lacks, k.ever && l.kind == aBare, lacks && k.newestTime() == 0:
		return v
	case l.kind == aRow && !l.kept && k.closeHoles(l):
		v = k.decideExport(l, now)
		v.outcome = max(v.outcome, noted)
		return v
	case k.ever && k.flags&ofBare == 0 && l.time <= k.newestTime() && (!near || k.flags&ofExport != 0):
		if l.kind == aNet && !l.kept && k.fillHole(l, true) {
			v.outcome = noted
		}
		return v
	case k.ever && now == l.new, near && (l.note == noteFits || k.hadImage(l.new, now) || lacks && k.want == 0 && k.first.time >= l.time-minute):
		if lacks {
			return v
		}
		if l.time > k.at || k.flags&ofExport == 0 {
			k.at, k.flags = max(l.time, k.at), k.flags&lasting|silent|ofExport
			v.outcome = noted
		}
		return v
	case near && (l.kind == aRow || k.newestTime() > l.time):
		v.gap = "the row of the export is none that the recording has: a change is missing"
	case k.ever && k.flags&ofBare == 0 && l.kind == aRow && l.kept:
		v.gap = "the row of the export is another than the last one recorded: changes are missing in its history"
	}
	if v.gap != "" {
		h := k.holeTo(l.mark, now, l.new)
		h.near |= nearTo
		k.addHole(h)
		if k.newestTime() > l.time {
			v.outcome = noted
			return v
		}
	}
	v.outcome, v.applied = written, now != l.new
	k.noteWritten(l, now)
	if l.new == none {
		v.outcome = removal
	}
	switch {
	case lacks, l.kind == aNet:
		k.flags |= ofExport
	case l.kind == aRow:
		k.flags |= silent | ofExport
	case l.note == noteFits:
		k.flags |= silent | ofExport | ofBare
	default:
		k.flags |= silent
	}
	return v
}
