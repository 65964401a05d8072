package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// The goals of a first replay of the gallery: CPU time of a record of recordings of 10^6 and more, and memory.
const (
	goalEach      = 12.0  // µs without search
	goalSearching = 28.0  // µs with it
	goalPeers     = 4.0   // times the cost of weir, that other systems take
	goalFlat      = 1.3   // between the cheapest and the dearest record, of recordings of 10^5 and more
	goalDecoding  = 2.5   // times the cost of decoding, with --memory 1GB
	goalVerify    = 1.3   // times the cost of a first replay of the rows, that verify takes
	goalFrom      = 1e6   // records, from which on the times above hold
	roomEach      = 3_000 // bytes of disk for a record: the recording, the sorted files and the store
)

// benchGoals measures first replays of the gallery by the built program, from its start to its end, beside other systems that
// derive the same counts (scripts/peers, which compares the counts), and says which goals are met.
//
// The recordings have 100,000 records and ten times as many, up to b.most.
func (b *bench) benchGoals() error {
	var sizes []int
	for n := shortOrFull(b, 10_000, 100_000); n <= shortOrFull(b, 100_000, b.most); n *= 10 {
		sizes = append(sizes, n)
	}
	last := sizes[len(sizes)-1]
	if free, err := freeBytes(b.dir); err != nil || free < int64(last)*roomEach {
		return fmt.Errorf("%d records want %d MB of disk in %s, which has %d MB (%v); -temp names another directory", last, int64(last)*roomEach>>20, b.dir, free>>20, err)
	}
	bin, err := filepath.Abs(b.bin)
	if err == nil {
		_, err = os.Stat(bin)
	}
	if err != nil {
		return fmt.Errorf("build the program first: %w", err)
	}
	peers, why := b.buildPeers()
	if why != nil {
		b.table.add(line{what: "other systems", peer: "left out: " + strings.TrimSpace(why.Error())})
	}
	var each []float64
	for i, n := range sizes {
		rec, err := b.openRecording(n)
		if err != nil {
			return err
		}
		rounds := 1
		if i == 0 {
			rounds = shortOrFull(b, 1, 3) // they are short
		}
		cpu, err := b.withoutSearch(bin, rec, rounds)
		if err != nil {
			return err
		}
		each = append(each, cpu)
		if peers != "" {
			if err := b.besidePeers(peers, bin, rec, rounds); err != nil {
				return err
			}
		}
	}
	b.addGrowth(sizes, each)
	rec, err := b.openRecording(min(last, shortOrFull(b, 100_000, 1_000_000)))
	if err != nil {
		return err
	}
	if err := b.withSearch(bin, rec); err != nil {
		return err
	}
	if err := b.benchVerify(bin, rec.records); err != nil {
		return err
	}
	return b.besideDecoding(bin, rec)
}

// benchVerify adds the lines of verify, beside the first replay of the rows that it verifies.
func (b *bench) benchVerify(bin string, rows int) error {
	rec, err := b.recordingAt(fmt.Sprintf("%s/rows-%d.jsonl", b.dir, rows), "gallery", newWorld(1).nextRow, rows)
	if err != nil {
		return err
	}
	data, err := os.MkdirTemp(b.dir, "data-")
	defer os.RemoveAll(data)
	if err != nil {
		return err
	}
	flags := []string{"--data", data, "--memory", b.size.String()}
	_, replay, err := b.runWatched(bin, append([]string{"replay", rec.model, rec.path}, flags...)...)
	if err != nil {
		return err
	}
	most, verify, err := b.runWatched(bin, append([]string{"verify", rec.model}, flags...)...)
	if err != nil {
		return err
	}
	times := verify.cpu.Seconds() / replay.cpu.Seconds()
	l := line{what: fmt.Sprintf("verify of %d rows; first replay of them", rows), figure: rateFigure(rows, []cost{verify}), peer: rateFigure(rows, []cost{replay}), ratio: ratioText(times, "×")}
	if rows >= goalFrom {
		l.goal, l.met = "≤ "+ratioText(goalVerify, "×"), times <= goalVerify
	}
	b.table.add(l)
	b.addMemoryGoal(most, int64(b.size))
	return nil
}

// measureReplays replays a recording several times, and returns the costs and the most that the process had resident.
func (b *bench) measureReplays(bin string, rec recording, rounds int, flags ...string) (costs []cost, most int64, err error) {
	for range rounds {
		peak, c, err := b.measurePeak(bin, rec, flags...)
		if err != nil {
			return nil, 0, err
		}
		costs, most = append(costs, c), max(most, peak)
		b.printProgress("%d records %v: %.1f cpu µs each, %d MB", rec.records, flags, cpuEach(rec.records, []cost{c}), peak>>20)
	}
	return costs, most, nil
}

// addGrowth adds the line of the cost of a record as recordings grow.
func (b *bench) addGrowth(sizes []int, each []float64) {
	var of, cost []string
	for i, n := range sizes {
		of, cost = append(of, fmt.Sprint(n)), append(cost, fmt.Sprintf("%.1f", each[i]))
	}
	times := slices.Max(each) / slices.Min(each)
	l := line{what: "cost of a record, of " + strings.Join(of, ", "), figure: strings.Join(cost, ", ") + " cpu µs", ratio: ratioText(times, "×")}
	if sizes[0] >= 100_000 {
		l.goal, l.met = "≤ "+ratioText(goalFlat, "×"), times <= goalFlat
	}
	b.table.add(l)
}

// addMemoryGoal adds a line with a goal for the resident memory of a process.
func (b *bench) addMemoryGoal(most, goal int64) {
	b.table.add(line{what: "  most resident", figure: fmt.Sprintf("%d MB", most>>20), goal: fmt.Sprintf("≤ %d MB", goal>>20), met: most <= goal})
}

// withoutSearch adds the lines of replays without search, and returns the CPU time of a record in µs.
func (b *bench) withoutSearch(bin string, rec recording, rounds int) (float64, error) {
	costs, most, err := b.measureReplays(bin, rec, rounds, "--no-search")
	if err != nil {
		return 0, err
	}
	l := line{what: fmt.Sprintf("replay of %d records without search", rec.records), figure: rateFigure(rec.records, costs)}
	cpu := cpuEach(rec.records, costs)
	if rec.records >= goalFrom {
		l.goal, l.met = fmt.Sprintf("≤ %.0f µs", goalEach), cpu <= goalEach
	}
	b.table.add(l)
	b.addMemoryGoal(most, int64(b.size))
	return cpu, nil
}

func rateFigure(n int, costs []cost) string {
	return fmt.Sprintf("%.1f cpu µs each, %.0f records/s", cpuEach(n, costs), medianRate(n, costs))
}

// withSearch adds the lines of replays with search.
func (b *bench) withSearch(bin string, rec recording) error {
	costs, most, err := b.measureReplays(bin, rec, 1)
	if err != nil {
		return err
	}
	l := line{what: fmt.Sprintf("replay of %d records with search", rec.records), figure: rateFigure(rec.records, costs)}
	if rec.records >= goalFrom {
		l.goal, l.met = fmt.Sprintf("≤ %.0f µs", goalSearching), cpuEach(rec.records, costs) <= goalSearching
	}
	b.table.add(l)
	b.addMemoryGoal(most, int64(b.size))
	return nil
}

// besideDecoding adds the lines of replays with much memory, beside decoding the file and nothing else.
func (b *bench) besideDecoding(bin string, rec recording) error {
	c, err := measureCost(func() error { return b.decodeFile(rec) })
	if err != nil {
		return err
	}
	decoding := []cost{c}
	costs, most, err := b.measureReplays(bin, rec, 1, "--no-search", "--memory", "1GB")
	if err != nil {
		return err
	}
	n := rec.records
	times := cpuEach(n, costs) / cpuEach(n, decoding)
	b.table.add(line{what: fmt.Sprintf("replay of %d records without search, --memory 1GB; decoding", n), figure: rateFigure(n, costs),
		peer: rateFigure(n, decoding), ratio: ratioText(times, "×"), goal: "≤ " + ratioText(goalDecoding, "×"), met: times <= goalDecoding})
	b.addMemoryGoal(most, 1<<30)
	return nil
}

// buildPeers builds scripts/peers, which is a module of its own, with SQLite compiled from C where there is a compiler.
func (b *bench) buildPeers() (bin string, err error) {
	bin = filepath.Join(b.dir, "peers")
	cgo := "0"
	if _, err := exec.LookPath("gcc"); err == nil {
		cgo = "1"
	}
	build := exec.CommandContext(b.ctx, "go", "build", "-C", "scripts/peers", "-o", bin, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED="+cgo)
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building scripts/peers: %w: %s", err, out)
	}
	return bin, nil
}

// besidePeers adds a line for each other system that this machine has. Their ratios are of weir's CPU time in the same rounds.
func (b *bench) besidePeers(peers, bin string, rec recording, rounds int) error {
	cmd := exec.CommandContext(b.ctx, peers, "-json", "-projector", bin, "-recording", rec.path, "-rounds", fmt.Sprint(rounds), "-memory", b.size.String(), "-temp", b.dir)
	cmd.Stderr = b.talk
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("scripts/peers: %w", err)
	}
	var all []struct {
		Name, Keeps string
		CPU, Rate   float64 // µs a record, and records a second
		PeakMB      float64
	}
	if err := json.Unmarshal(out, &all); err != nil || len(all) == 0 || all[0].Name != "weir" {
		return fmt.Errorf("scripts/peers answers %q: %w", out, err)
	}
	for _, p := range all[1:] {
		times := p.CPU / all[0].CPU
		l := line{what: "  beside " + p.Name + ": " + p.Keeps, figure: fmt.Sprintf("%.1f cpu µs each", all[0].CPU),
			peer: fmt.Sprintf("%.1f cpu µs each, %.0f records/s, %.0f MB", p.CPU, p.Rate, p.PeakMB), ratio: ratioText(times, "×")}
		if p.Name == "sqlite" && rec.records >= goalFrom {
			l.goal, l.met = "≥ "+ratioText(goalPeers, "×"), times >= goalPeers
		}
		b.table.add(l)
	}
	return nil
}
