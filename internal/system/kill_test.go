package system_test

import (
	"bytes"
	"errors"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"weir/internal/model"
	"weir/internal/system/systemtest"
)

var kills = flag.Int("kills", 5, "how often TestKill kills each model's replay")

// TestKill kills the program that replays a recording, with SIGKILL at random
// moments of its life, and has it go on, until the replay is through. Rows, index
// entries, documents and answers are then those of a replay that nobody disturbed.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("kills processes")
	}
	bin := filepath.Join(t.TempDir(), "projector")
	if out, err := exec.Command("go", "build", "-o", bin, "../../cmd/projector").CombinedOutput(); err != nil {
		t.Fatalf("building the program: %v\n%s", err, out)
	}
	for _, name := range []string{"gallery", "wardrobe"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := killer{t: t, bin: bin, name: name, seed: rand.Uint64()}
			k.run()
		})
	}
}

type killer struct {
	t         *testing.T
	bin, name string
	seed      uint64
	r         *rand.Rand
	takes     time.Duration // a replay that nobody disturbs

	killed, replays int
}

func (k *killer) run() {
	k.r = rand.New(rand.NewPCG(k.seed, 0))
	k.t.Logf("seed %d", k.seed)
	checks := systemtest.Read(k.t, filepath.Join("../../testdata/streams", k.name)).Checks
	undisturbed := k.t.TempDir()
	start := time.Now()
	if !k.replay(undisturbed, time.Hour) {
		k.t.Fatal("a replay that nobody killed did not end")
	}
	k.takes = time.Since(start)
	want := k.look(undisturbed, checks)
	for k.killed < *kills {
		k.replays++
		dir := k.t.TempDir()
		before := k.killed
		for !k.replay(dir, time.Duration(k.r.Int64N(int64(k.takes*11/10)))) {
			k.killed++
		}
		if !same(k.t, want, k.look(dir, checks)) {
			k.t.Fatalf("seed %d, replay %d, after %d kills", k.seed, k.replays, k.killed-before)
		}
		if err := os.RemoveAll(dir); err != nil {
			k.t.Fatal(err)
		}
	}
	k.t.Logf("%d kills in %d replays of %v each", k.killed, k.replays, k.takes.Round(time.Millisecond))
}

// replay runs the program for so long at the most, and reports whether it came to
// its end by itself.
func (k *killer) replay(dir string, killAfter time.Duration) bool {
	args := append([]string{"replay", k.name, "--data", dir}, systemtest.Files(k.t, filepath.Join("../../testdata/streams", k.name))...)
	cmd := exec.Command(k.bin, args...)
	var talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &talk, &talk
	if err := cmd.Start(); err != nil {
		k.t.Fatal(err)
	}
	timer := time.AfterFunc(killAfter, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	err := cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return true
	case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL:
		return false
	}
	k.t.Fatalf("seed %d, after %d kills: %v\n%s", k.seed, k.killed, err, talk.Bytes())
	return false
}

// look opens what a replay left, asks everything, and dumps it.
func (k *killer) look(dir string, checks []systemtest.Check) []string {
	m, err := model.Load(k.name)
	if err != nil {
		k.t.Fatal(err)
	}
	s := openSystem(k.t, dir, m)
	defer s.Close()
	checkAll(k.t, s, checks)
	verifyNothing(k.t, s)
	return dump(k.t, s)
}
