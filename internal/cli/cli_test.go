package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestSignals starts a process that stops for two seconds once it is told to. Signals that
// come together stop it, as one does; one that comes later ends it.
func TestSignals(t *testing.T) {
	if os.Getenv("WEIR_TEST_STOPS") != "" {
		ctx := Stopped(context.Background())
		os.Stdout.WriteString("ready")
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), ErrTerminated) {
			os.Exit(9)
		}
		time.Sleep(2 * time.Second)
		os.Exit(7)
	}
	for _, c := range []struct {
		name  string
		apart time.Duration
		ends  bool
	}{
		{"together", 20 * time.Millisecond, false},
		{"apart", 2 * sameSignal, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run", "^TestSignals$")
			cmd.Env = append(os.Environ(), "WEIR_TEST_STOPS=1")
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if _, err := out.Read(make([]byte, 5)); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
					t.Fatal(err)
				}
				time.Sleep(c.apart)
			}
			_ = cmd.Wait()
			status := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if ended := status.Signaled(); ended != c.ends || !ended && status.ExitStatus() != 7 {
				t.Errorf("ended by a signal: %v, exit code %d", ended, status.ExitStatus())
			}
		})
	}
}
