package replay

import "weir/internal/value"

// history is what the recorded changes that were written into a row say of it.
type history struct {
	seen  mark
	ever  bool        // some recorded change was written here before
	swept value.Value // if a sweep removed the row, the digest of what it was
}

// compared is what a record's images, without what weir derives, have to do with the row in
// the store (stored).
type compared struct {
	saysOld                    bool // the record has an old image
	old, stored, image         bool // there is one
	oldIsStored, storedIsImage bool // they are equal; both missing is equal, too
	oldIsImage                 func() bool
	digest                     func() value.Value // of the old image
}

// outcome is what a record does to its row.
type outcome uint8

const (
	skipped outcome = iota // the row has seen it
	nothing                // the row is as it should be, and nothing happened to it
	written
	removal // of the row, or of a row that was removed before
)

// verdict is what becomes of a record.
type verdict struct {
	outcome outcome
	applied bool   // it changes its row
	gap     string // why it does not follow from the row, "" if it does
	mark    mark
}

// decide says what becomes of a record, whether it is written by itself or reduced.
func (h *history) decide(m mark, c compared) (v verdict) {
	v.mark = m
	if !v.mark.after(h.seen, h.ever, c) {
		return v
	}
	v.gap, v.applied = h.gapIn(m, c), !c.storedIsImage
	switch {
	case !c.image:
		v.outcome = removal
	case !v.applied && c.oldIsImage():
		v.outcome = nothing
	default:
		v.outcome = written
	}
	return v
}

// take notes that a record was written, or that it removed the row.
func (h *history) take(v verdict) { *h = history{seen: v.mark, ever: true} }

// gapIn compares the old image with the row in the store. It describes the gap, "" if
// there is none.
func (h *history) gapIn(m mark, c compared) string {
	switch {
	case !h.ever && !c.stored || m.position.IsZero() && !c.saysOld:
		return "" // the recording begins here for this row, or holds rows only
	case !c.old && c.stored:
		return "an insert of a row that was there: its removal is missing"
	case c.old && !c.stored && value.Equal(h.swept, c.digest()):
		return "" // it expired here before the recording said more of it
	case c.old && !c.stored:
		return "a change of a row that was removed: its insertion is missing"
	case !c.oldIsStored:
		return "the old image is not the last one seen: a change is missing"
	}
	return ""
}
