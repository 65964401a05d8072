package main

import (
	"fmt"
	"slices"
)

// scale looks at what a record costs in replays (as in replay.go) of recordings of
// growing length and the same shape, a hot album and a hot picture among them.
func (b *bench) scale() error {
	sizes := pick(b, []int{10_000, 30_000, 100_000}, []int{10_000, 100_000, 1_000_000})
	each := make([]float64, len(sizes)) // µs
	for i, n := range sizes {
		rec, err := b.recording(n)
		if err != nil {
			return err
		}
		var costs []cost
		for range max(1, 5-2*i) {
			c, err := b.replayOnce(rec, false)
			if err != nil {
				return err
			}
			costs = append(costs, c)
		}
		each[i] = 1e6 / rate(n, costs)
		b.say("%d records: %.1f µs each, %.1f of processors", n, each[i], cpuEach(n, costs))
	}
	figure := ""
	for i, n := range sizes {
		figure += fmt.Sprintf("%s%.1f µs at %d", map[bool]string{true: ", "}[i > 0], each[i], n)
	}
	spread := slices.Max(each) / slices.Min(each)
	b.table.add(line{what: "cost of a record, as recordings grow", figure: figure, peer: "itself", ratio: show(spread, "×"), goal: "≤ 1.20 ×", met: spread <= 1.2})
	return nil
}
