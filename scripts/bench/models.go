package main

import (
	"fmt"
	"path/filepath"

	"weir/internal/events"
)

// benchModels measures replays in bulk of each model without search, as the built program does them from its
// start to its end, and beside them how fast one processor decodes the same file.
func (b *bench) benchModels() error {
	bin, err := filepath.Abs(b.bin)
	if err != nil {
		return err
	}
	n := shortOrFull(b, 20_000, b.records)
	for _, of := range []struct {
		model string
		goal  float64 // of processor time a record, in µs
	}{{"gallery", 12}, {"viewing", 12}, {"movienight", 24}, {"watchlists", 24}, {"wardrobe", 24}} {
		rec, err := b.copyRecording(of.model, n)
		if err != nil {
			return err
		}
		var bulk, decoding []cost
		var most int64
		for range shortOrFull(b, 1, 3) {
			peak, c, err := b.measurePeak(bin, rec, "--no-search", "--bulk=auto")
			if err != nil {
				return err
			}
			bulk, most = append(bulk, c), max(most, peak)
			c, err = measureCost(func() error { return b.decodeFile(rec) })
			if err != nil {
				return err
			}
			decoding = append(decoding, c)
			b.printProgress("%s: %.1f cpu µs each, %.2f processors, %d MB", of.model, cpuEach(n, bulk[len(bulk)-1:]),
				bulk[len(bulk)-1].cpu.Seconds()/bulk[len(bulk)-1].wall.Seconds(), peak>>20)
		}
		both, each := medianCost(bulk), cpuEach(n, bulk)
		b.table.add(line{
			what:   fmt.Sprintf("replay of %d records of %s in bulk; decoding", n, of.model),
			figure: fmt.Sprintf("%.1f cpu µs each, %.0f records/s, %d MB", each, medianRate(n, bulk), most>>20),
			peer:   fmt.Sprintf("%.1f cpu µs each", cpuEach(n, decoding)),
			ratio:  fmt.Sprintf("%.2f processors", both.cpu.Seconds()/both.wall.Seconds()),
			goal:   fmt.Sprintf("≤ %.0f µs", of.goal), met: each <= of.goal,
		})
	}
	return nil
}

// decodeFile reads the records of a file.
func (b *bench) decodeFile(rec recording) error {
	files, err := events.Open(rec.path)
	if err != nil {
		return err
	}
	for _, err := range files.Batches(b.ctx) {
		if err != nil {
			return err
		}
	}
	return nil
}
