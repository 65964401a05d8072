package main

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/system"
)

// scale looks at what a record costs in replays (as in replay.go) of recordings of
// growing length.
//
// Records must be alike for that. A young gallery has few albums and pictures, so
// that most of what happens falls on the same ones: of its first 10,000 records,
// 4,000 in a row change 1,900 rows and count for 250 albums and pictures; from some
// 50,000 on they change 3,400 and count for 900 to 1,000, and that stays. Nor does a new
// store ever flush within 10,000 records. So each round first replays the gallery's
// youth, which has a line of its own; the recordings follow it, without a break.
func (b *bench) scale() error {
	s := scaling{
		youth: pick(b, 20_000, 50_000),
		sizes: pick(b, []int{10_000, 30_000, 100_000}, []int{10_000, 100_000, 1_000_000}),
		costs: map[int][]cost{},
	}
	for round := range 5 {
		if err := s.round(b, s.sizes[:max(1, len(s.sizes)-round)]); err != nil {
			return err
		}
	}
	var figures []string
	var each []float64 // µs
	for _, n := range s.sizes {
		each = append(each, 1e6/rate(n, s.costs[n]))
		figures = append(figures, s.figure(n, n))
	}
	spread := slices.Max(each) / slices.Min(each)
	b.table.add(line{what: "cost of a record, as recordings grow", figure: strings.Join(figures, ", "), peer: "itself", ratio: show(spread, "×"), goal: "≤ 1.20 ×", met: spread <= 1.2})
	b.table.add(line{what: "  before them, of a young gallery in a new store", figure: s.figure(0, s.youth)})
	return nil
}

// scaling is what replays of a gallery cost as it grows.
type scaling struct {
	youth int
	sizes []int          // after it, ascending
	costs map[int][]cost // by size; of the youth at 0
}

// round replays the youth into a new store, and then as much as the largest of the
// sizes.
func (s *scaling) round(b *bench, sizes []int) error {
	parts, err := s.parts(b)
	if err != nil {
		return err
	}
	r, err := b.open(parts[0].model, system.Options{NoSearch: true})
	if err != nil {
		return err
	}
	defer r.remove()
	var sum cost
	for i, part := range parts[:1+len(sizes)] {
		c, err := measured(func() error { return r.replay(b.ctx, part) })
		if err != nil {
			return err
		}
		if i == 0 {
			s.costs[0] = append(s.costs[0], c)
			continue
		}
		n := sizes[i-1]
		sum.wall, sum.cpu = sum.wall+c.wall, sum.cpu+c.cpu
		s.costs[n] = append(s.costs[n], sum)
		b.say("%d records: %.1f µs each, %.1f of processors", n, 1e6/rate(n, []cost{sum}), cpuEach(n, []cost{sum}))
	}
	return nil
}

// parts are the recordings: the youth, and what each size has beyond the one before.
func (s *scaling) parts(b *bench) (out []recording, err error) {
	w, before := newWorld(1), 0
	for i, n := range append([]int{s.youth}, s.sizes...) {
		part, err := b.recordingAt(fmt.Sprintf("%s/growing-%d.jsonl", b.dir, i), "gallery", w.next, n-before)
		if err != nil {
			return nil, err
		}
		if out = append(out, part); i > 0 {
			before = n
		}
	}
	return out, nil
}

func (s *scaling) figure(of, records int) string {
	return fmt.Sprintf("%.1f µs (%.1f of processors) at %d", 1e6/rate(records, s.costs[of]), cpuEach(records, s.costs[of]), records)
}
