package bulk_test

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/bulk"
	"weir/internal/model"
	"weir/internal/soaktest"
	"weir/internal/system/systemtest"
)

var kills = flag.Int("kills", 5, "how many processes TestKill kills, at the least")

// recorded is the models whose recordings are replayed by processes that are killed: the changes of the
// rows of the first are reduced, those of the others are applied.
var recorded = []string{"gallery", "wardrobe", "watchlists", "movienight", "viewing"}

func dirOf(name string) string { return "../../testdata/streams/" + name }

// TestVictim is the process that TestKill kills: it replays the recording of BULK_MODEL in bulk into
// the directory in BULK_DIR, in windows of BULK_WINDOW bytes.
func TestVictim(t *testing.T) {
	dir := os.Getenv("BULK_DIR")
	if dir == "" {
		t.Skip("TestKill runs it")
	}
	most, err := strconv.Atoi(os.Getenv("BULK_WINDOW"))
	must(t, err)
	name := os.Getenv("BULK_MODEL")
	m, err := model.Load(name)
	must(t, err)
	w := &world{t: t, m: m, dir: dir}
	w.open()
	b, why, err := bulk.New(context.Background(), w.replay(), sized(most))
	must(t, err)
	if why != "" {
		t.Fatal(why)
	}
	for _, batch := range read(t, systemtest.Files(t, dirOf(name))) {
		must(t, b.Batch(context.Background(), batch, ""))
	}
	must(t, b.Land(context.Background()))
	must(t, b.Close())
	must(t, w.sys.Close())
}

// TestKill kills processes that replay in bulk at random moments, and has them go on until
// one comes to its end. What there is then is what a live replay leaves.
func TestKill(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for _, name := range recorded[:soaktest.Count(1, len(recorded))] {
		t.Run(name, func(t *testing.T) { testKill(t, r, name) })
	}
}

func testKill(t *testing.T, r *rand.Rand, name string) {
	m, err := model.Load(name)
	must(t, err)
	live := newWorld(t, m)
	sum := live.live(read(t, systemtest.Files(t, dirOf(name))))
	took := victimOf(t, name, t.TempDir(), 60_000, time.Hour)
	killed, rounds := 0, 0
	for killed < soaktest.Count(2, *kills) {
		rounds++
		dir, window := t.TempDir(), 5_000+r.IntN(1_000_000)
		for range 1 + r.IntN(8) {
			if victimOf(t, name, dir, window, time.Duration(r.Int64N(int64(took)))) > 0 {
				break
			}
			killed++
		}
		victimOf(t, name, dir, window, time.Hour)
		w := &world{t: t, m: m, dir: dir}
		w.open()
		if !same(t, "after kills", live, w, sum, sum) {
			t.Fatalf("round %d, windows of %d bytes", rounds, window)
		}
		must(t, w.sys.Close())
	}
	t.Logf("%d killed in %d rounds; undisturbed %v", killed, rounds, took)
}

// victimOf runs the victim for so long at the most. It returns how long it took, 0 if it
// was killed.
func victimOf(t *testing.T, name, dir string, window int, killAfter time.Duration) time.Duration {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.run=^TestVictim$")
	cmd.Env = append(os.Environ(), "BULK_MODEL="+name, "BULK_DIR="+dir, "BULK_WINDOW="+strconv.Itoa(window))
	var talk strings.Builder
	cmd.Stdout, cmd.Stderr = &talk, &talk
	start := time.Now()
	must(t, cmd.Start())
	timer := time.AfterFunc(killAfter, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return time.Since(start)
	case errors.As(err, &exit) && exit.ExitCode() < 0:
		return 0
	}
	t.Fatalf("%v\n%s", err, talk.String())
	return 0
}
