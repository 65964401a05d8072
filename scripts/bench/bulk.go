package main

import (
	"fmt"
	"path/filepath"
)

// bulk compares replays in bulk with replays that write each record by itself, both without
// search: the built program, from its start to its end, into a new directory each time. The
// two take turns, so that other load on the machine affects both alike.
func (b *bench) bulk() error {
	bin, err := filepath.Abs(b.bin)
	if err != nil {
		return err
	}
	for _, n := range pick(b, []int{100_000}, []int{100_000, 1_000_000}) {
		rec, err := b.recording(n)
		if err != nil {
			return err
		}
		var costs [2][]cost
		var peaks [2]int64
		for range pick(b, 1, 3) {
			for i, how := range []string{"auto", "never"} {
				peak, c, err := b.peak(bin, rec, "--no-search", "--bulk="+how)
				if err != nil {
					return err
				}
				costs[i], peaks[i] = append(costs[i], c), max(peaks[i], peak)
				b.say("%d records, --bulk=%s: %.1f cpu µs each, %.0f records/s, %d MB", n, how,
					float64(c.cpu.Microseconds())/float64(n), float64(n)/c.wall.Seconds(), peak>>20)
			}
		}
		text := func(i int) string {
			return fmt.Sprintf("%.1f cpu µs each, %.0f records/s, %d MB", cpuEach(n, costs[i]), rate(n, costs[i]), peaks[i]>>20)
		}
		b.table.add(line{
			what: fmt.Sprintf("replay of %d records in bulk; one by one", n), figure: text(0), peer: text(1),
			ratio: show(cpuEach(n, costs[1])/cpuEach(n, costs[0]), "×"),
		})
	}
	return nil
}
