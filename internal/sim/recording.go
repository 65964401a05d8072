package sim

import (
	"bytes"

	"weir/internal/events"
	"weir/internal/value"
)

// checkRecordings writes the run's streams to files, as they are recorded, may damage the last
// record of a file, and reads the files. Every other record must be read as it was written.
// In the place of the damaged one there may be up to three entries, as a byte that becomes
// the end of a line splits it.
func (w *world) checkRecordings() {
	var all []events.Record
	for _, mt := range w.model.Tables {
		for _, s := range w.base.tables[mt.Name].shards {
			all = append(all, s.records...)
		}
	}
	w.faults.over = false
	half := len(all) / 2
	w.checkRecording(all[:half])
	w.checkRecording(all[half:])
	w.faults.over = true
}

// checkRecording writes and reads one file.
func (w *world) checkRecording(want []events.Record) {
	if len(want) == 0 {
		return
	}
	var file []byte
	last := 0
	for i := range want {
		last = len(file)
		file = append(appendRecord(file, &want[i]), '\n')
	}
	damaged := true
	switch {
	case w.strikeWeighted(TornTail, 8):
		file = file[:last+w.faults.dice.n(len(file)-last)]
	case w.strikeWeighted(FlippedBits, 20):
		at := last + w.faults.dice.n(len(file)-last-1)
		file[at] ^= byte(1 + w.faults.dice.n(255))
	default:
		damaged = false
	}
	whole := len(want)
	if damaged {
		whole--
	}
	n := 0
	err := events.Read(bytes.NewReader(file), "the recording", func(e events.Entry) error {
		if n < whole && (e.Bad != nil || !sameRecord(&e.Record, &want[n])) {
			w.addFailure(Lost, "recording: record %d of %d, which is whole, is read as %v %+v", n+1, len(want), e.Bad, e.Record)
		}
		n++
		return nil
	})
	if n < whole || n > whole+3 || err != nil && !damaged {
		w.addFailure(Unaccounted, "recording: of %d records %d are read: %v", len(want), n, err)
	}
}

func sameRecord(a, b *events.Record) bool {
	same := func(x, y value.Item) bool { return (x == nil) == (y == nil) && value.EqualItems(x, y) }
	return a.Position == b.Position && a.Expired == b.Expired && a.Time.Equal(b.Time) && same(a.Keys, b.Keys) && same(a.Old, b.Old) && same(a.New, b.New)
}
