package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2"

	"weir/internal/system"
)

// scale looks at what a record costs in replays (as in replay.go) of recordings of
// growing length, and at what plain writes of the same rows into Pebble cost as they grow:
// weir's own among them, since they are merged with the others.
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
	}
	parts, err := s.parts(b)
	if err != nil {
		return err
	}
	peer, err := b.capture(withOwnRows, parts...)
	if err != nil {
		return err
	}
	defer peer.free()
	weir, plain := growth{}, growth{}
	for round := range 5 {
		sizes := s.sizes[:max(1, len(s.sizes)-round)]
		if err := s.replays(b, parts, sizes, weir); err != nil {
			return err
		}
		if err := s.writes(b, peer, sizes, plain); err != nil {
			return err
		}
	}
	var sizes []string
	for _, n := range s.sizes {
		sizes = append(sizes, strconv.Itoa(n))
	}
	ours, theirs := weir.spread(s.sizes), plain.spread(s.sizes)
	b.table.add(line{
		what:   "cost of a record, as recordings grow: of " + strings.Join(sizes, ", ") + "; Pebble, the same rows and weir's own",
		figure: weir.figure(s.sizes...), peer: plain.figure(s.sizes...) + ": " + show(theirs, "×"),
		ratio: show(ours, "×"),
	})
	b.table.add(line{what: fmt.Sprintf("  before them, of a young gallery in a new store: of %d", s.youth), figure: weir.figure(s.youth), peer: plain.figure(s.youth)})
	return nil
}

// scaling is a gallery that grows: its youth, and then as many records as the sizes say.
type scaling struct {
	youth int
	sizes []int // after it, ascending
}

// growth is what so many records cost, by size; the youth's, which are before them, too.
type growth map[int][]cost

// spread is how many times the least that a record cost, of these sizes, the most is.
func (g growth) spread(sizes []int) float64 {
	var each []float64
	for _, n := range sizes {
		each = append(each, 1/rate(n, g[n]))
	}
	return slices.Max(each) / slices.Min(each)
}

func (g growth) figure(sizes ...int) string {
	var wall, cpu []string
	for _, n := range sizes {
		wall = append(wall, fmt.Sprintf("%.1f", 1e6/rate(n, g[n])))
		cpu = append(cpu, fmt.Sprintf("%.1f", cpuEach(n, g[n])))
	}
	return strings.Join(wall, ", ") + " µs (" + strings.Join(cpu, ", ") + " of processors)"
}

// replays replays the youth into a new store, and then as much as the largest of the
// sizes.
func (s *scaling) replays(b *bench, parts []recording, sizes []int, g growth) error {
	r, err := b.open(parts[0].model, system.Options{NoSearch: true})
	if err != nil {
		return err
	}
	return errors.Join(s.grow(b, "weir", sizes, g, func(part int) error { return r.replay(b.ctx, parts[part]) }), r.remove())
}

// writes has Pebble write the same.
func (s *scaling) writes(b *bench, w *written, sizes []int, g growth) error {
	return w.within(b, func(db *pebble.DB) error {
		return s.grow(b, "pebble", sizes, g, func(part int) error { return w.writeAll(b, db, part, withOwnRows) })
	})
}

func (s *scaling) grow(b *bench, who string, sizes []int, g growth, do func(part int) error) error {
	var sum cost
	for part, n := range append([]int{s.youth}, sizes...) {
		c, err := measured(func() error { return do(part) })
		if err != nil {
			return err
		}
		if part > 0 {
			sum.wall, sum.cpu = sum.wall+c.wall, sum.cpu+c.cpu
			c = sum
		}
		g[n] = append(g[n], c)
		b.say("%s, %d records: %s", who, n, growth{n: {c}}.figure(n))
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
