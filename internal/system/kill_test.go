package system_test

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"weir/internal/failtest"
	"weir/internal/model"
	"weir/internal/soaktest"
	"weir/internal/system/systemtest"
)

var (
	kills    = flag.Int("kills", 14, "how many processes TestKill kills, at the least")
	killSeed = flag.Uint64("killseed", 0, "the seed of TestKill's moments; 0 is any")
)

// TestKill kills the programs with SIGKILL at random moments of their lives, on the
// real disk: replays of recordings, an ingest of commands, a process that follows what
// was written. It has them go on until all is through. Rows, index entries, documents
// and answers are then those of programs that nobody disturbed.
func TestKill(t *testing.T) {
	soaktest.Calm(t)
	works, programs := []string{"gallery", "wardrobe", "watchlists", "viewing", "movienight", writing}, []string{"../../cmd/projector", "../../cmd/ingest"}
	if testing.Short() {
		*kills, works, programs = 2, works[:1], programs[:1]
	}
	bin := t.TempDir()
	if out, err := exec.Command("go", append([]string{"build", "-o", bin}, programs...)...).CombinedOutput(); err != nil {
		t.Fatalf("building the programs: %v\n%s", err, out)
	}
	seed := *killSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-killseed %d", seed)
	share := (*kills + len(works) - 1) / len(works)
	var killed, rounds atomic.Int64
	t.Run("all", func(t *testing.T) {
		for i, name := range works {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				k := killer{t: t, bin: bin, name: name, r: rand.New(rand.NewPCG(seed, uint64(i))), takes: map[string]time.Duration{}}
				k.run(share)
				killed.Add(int64(k.killed))
				rounds.Add(int64(k.rounds))
			})
		}
	})
	fmt.Printf("=> %d processes killed in %d rounds, -killseed %d\n", killed.Load(), rounds.Load(), seed)
}

// writing is the work that is no replay.
const writing = "writing"

type killer struct {
	t         *testing.T
	bin, name string
	r         *rand.Rand
	takes     map[string]time.Duration // of commands that nobody disturbs
	commands  string                   // the file that is ingested

	killed, rounds int
	until          int // nobody is killed in this round once so many are
}

func (k *killer) run(atLeast int) {
	round, checks := k.replay, []systemtest.Check(nil)
	m, err := model.Load("gallery")
	if k.name == writing {
		round, k.commands = k.write, commandsFile(k.t)
	} else {
		checks = systemtest.Read(k.t, filepath.Join("../../testdata/streams", k.name)).Checks
		m, err = model.Load(k.name)
	}
	if err != nil {
		k.t.Fatal(err)
	}
	undisturbed := k.t.TempDir()
	round(undisturbed, false)
	want := k.look(undisturbed, m, checks)
	for k.killed < atLeast && (k.killed == 0 || soaktest.Left() > 0) {
		k.rounds++
		dir, before := k.t.TempDir(), k.killed
		k.until = k.killed + (atLeast+1)/2
		round(dir, true)
		if !same(k.t, want, k.look(dir, m, checks)) {
			k.t.Fatalf("round %d, after %d kills", k.rounds, k.killed-before)
		}
		if err := os.RemoveAll(dir); err != nil {
			k.t.Fatal(err)
		}
	}
	k.t.Logf("%d kills in %d rounds of %v", k.killed, k.rounds, k.takes)
}

// replay replays a recording.
func (k *killer) replay(dir string, kill bool) {
	args := append([]string{"replay", k.name, "--data", dir}, systemtest.Files(k.t, filepath.Join("../../testdata/streams", k.name))...)
	k.toEnd(kill, "projector", args...)
}

// write ingests commands, and has a process follow what they wrote.
func (k *killer) write(dir string, kill bool) {
	k.toEnd(kill, "ingest", "put", "gallery", "--data", dir, k.commands)
	args := []string{"run", "gallery", "--data", dir, "--addr", "127.0.0.1:0"}
	for kill && k.r.IntN(10) > 0 {
		k.once(k.moment(500*time.Millisecond), "projector", args...)
		k.killed++
	}
	k.follow(args)
}

// follow has a process follow to the end of what there is.
func (k *killer) follow(args []string) {
	cmd := exec.Command(filepath.Join(k.bin, "projector"), args...)
	out, err := cmd.StderrPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		k.t.Fatal(err)
	}
	var talk []byte
	for b := make([]byte, 1); !bytes.Contains(talk, []byte("serving")); talk = append(talk, b...) {
		if _, err := out.Read(b); err != nil {
			k.t.Fatalf("%v\n%s", err, talk)
		}
	}
	_ = cmd.Process.Signal(syscall.SIGTERM)
	rest, _ := io.ReadAll(out)
	if err := cmd.Wait(); err != nil {
		k.t.Fatalf("%v\n%s%s", err, talk, rest)
	}
}

// toEnd runs a program until it comes to its end by itself. It is killed until it
// does, or enough are killed in this round.
func (k *killer) toEnd(kill bool, program string, args ...string) {
	for kill && k.killed < k.until {
		if k.once(k.moment(k.takes[args[0]]*11/10), program, args...) {
			return
		}
		k.killed++
	}
	start := time.Now()
	if !k.once(time.Hour, program, args...) {
		k.t.Fatal("killed by somebody else")
	}
	if !kill {
		k.takes[args[0]] = time.Since(start)
	}
}

// moment is any until a time, early ones more often: so that there are many in what is
// left of a work.
func (k *killer) moment(until time.Duration) time.Duration {
	f := k.r.Float64()
	return time.Duration(float64(until) * f * f)
}

// once runs a program for so long at the most, and reports whether it came to its end
// by itself.
func (k *killer) once(killAfter time.Duration, program string, args ...string) bool {
	cmd := exec.Command(filepath.Join(k.bin, program), args...)
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
	k.t.Fatalf("%s %s, after %d kills: %v\n%s", program, args[0], k.killed, err, talk.Bytes())
	return false
}

// look opens what a round left, asks everything, and dumps it.
func (k *killer) look(dir string, m *model.Model, checks []systemtest.Check) []string {
	s := openSystem(k.t, dir, m)
	defer s.Close()
	if checks != nil {
		checkAll(k.t, s, checks)
	}
	verifyNothing(k.t, s)
	return dump(k.t, s)
}

// commandsFile has commands that come to the same however often they come: what is
// created is not changed after that, for then it would be refused when it comes again.
func commandsFile(t *testing.T) string {
	const at = `"2026-01-02T03:04:05Z"`
	var b strings.Builder
	for i := range 40 {
		fmt.Fprintf(&b, `{"op": "put", "entity": "Album", "item": {"id": "a%d", "title": "album %d", "createdAt": %s}}`+"\n", i, i, at)
	}
	for i := range 400 {
		fmt.Fprintf(&b, `{"op": "create", "entity": "Media", "item": {"id": "m%d", "filename": "picture %d", "createdAt": %s}}`+"\n", i, i, at)
		for j := range 3 {
			fmt.Fprintf(&b, `{"op": "create", "entity": "AlbumMedia", "item": {"albumId": "a%d", "mediaId": "m%d", "addedAt": %s}}`+"\n", (i*i+j)%40, i, at)
		}
	}
	for i := range 40 {
		fmt.Fprintf(&b, `{"op": "put", "entity": "Album", "item": {"id": "a%d", "title": "another title %d", "isPublic": %t, "createdAt": %s}}`+"\n", i, i, i%3 > 0, at)
	}
	name := filepath.Join(t.TempDir(), "commands.jsonl")
	failtest.On(t, os.WriteFile(name, []byte(b.String()), 0o644))
	return name
}
