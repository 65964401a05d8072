package embedded

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/soaktest"
	"weir/internal/store"
)

// killDir makes the test binary the child of TestKill, which writes there.
const killDir = "WEIR_TEST_KILL_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(killDir); dir != "" {
		writeUntilKilled(dir)
	}
	os.Exit(m.Run())
}

// writeUntilKilled counts in four rows for ever, and prints each count that is synced.
func writeUntilKilled(dir string) {
	ctx := context.Background()
	s, err := Open(dir, []store.Table{things()}, Options{MemTableBytes: 256 << 10})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	for n := 1; ; n++ {
		var ws []store.Write
		for i := range 4 {
			ws = append(ws, store.Write{Ref: ref(fmt.Sprint("p", i), "x"), Ops: []store.Op{
				{Kind: store.Add, Attr: "n", Value: val(1)},
				{Kind: store.Set, Attr: "kind", Value: val(fmt.Sprint(n))}, {Kind: store.Set, Attr: "at", Value: val(pad(500))}}})
		}
		if _, err := s.Write(ctx, ws); err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		if n%7 == 0 {
			if err := s.Sync(ctx); err != nil {
				fmt.Println("error", err)
				os.Exit(1)
			}
			fmt.Println("synced", n)
		}
	}
}

// TestKill kills a process while it writes, again and again. What it synced is there,
// the store is consistent, and the next owner can open it.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	promised := 0
	for round := range soaktest.Count(1, 6) {
		promised = max(promised, killOne(t, dir, time.Duration(20+40*round)*time.Millisecond))
		s, err := Open(dir, []store.Table{things()}, Options{})
		if err != nil {
			t.Fatal(err)
		}
		verify(t, s)
		least, most := int64(1<<62), int64(0)
		for i := range 4 {
			n, _ := get(t, s, fmt.Sprint("p", i), "x").Get("n").Int64()
			least, most = min(least, n), max(most, n)
		}
		if least != most || least < int64(promised) {
			t.Errorf("round %d: rows count %d to %d, %d was promised", round, least, most, promised)
		}
		promised = int(most)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// killOne lets a child write for a while after its first sync, tries to open its
// directory meanwhile, and kills it. It returns the count that the rows must at least
// have.
func killOne(t *testing.T, dir string, after time.Duration) (promised int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for first := true; lines.Scan(); first = false {
		n, err := strconv.Atoi(strings.TrimPrefix(lines.Text(), "synced "))
		if err != nil {
			t.Fatal(lines.Text())
		}
		promised = n
		if first {
			checkOwned(t, dir, cmd.Process.Pid)
			time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		}
	}
	_ = cmd.Wait()
	return promised
}
