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

// TestSignals starts a process that takes a while to stop once it is told to. Signals that
// come together stop it, as one does; one that comes later ends it.
func TestSignals(t *testing.T) {
	if env := os.Getenv("WEIR_TEST_STOPS"); env != "" {
		same, err := time.ParseDuration(env)
		if err != nil {
			t.Fatal(err)
		}
		ctx := stopped(context.Background(), same)
		os.Stdout.WriteString("ready")
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), ErrTerminated) {
			os.Exit(9)
		}
		if same < time.Second { // until the next signal
			time.Sleep(time.Minute)
		}
		time.Sleep(2 * time.Second)
		os.Exit(7)
	}
	for _, c := range []struct {
		name string
		same time.Duration // what is taken for the same signal
		ends bool
	}{
		{"together", time.Hour, false},
		{"apart", time.Millisecond, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0], "-test.run", "^TestSignals$")
			cmd.Env = append(os.Environ(), "WEIR_TEST_STOPS="+c.same.String())
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
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_ = cmd.Wait()
			}()
			for over := false; !over; {
				_ = cmd.Process.Signal(syscall.SIGTERM)
				select {
				case <-ended:
					over = true
				case <-time.After(50 * time.Millisecond):
				}
			}
			status := cmd.ProcessState.Sys().(syscall.WaitStatus)
			if ended := status.Signaled(); ended != c.ends || !ended && status.ExitStatus() != 7 {
				t.Errorf("ended by a signal: %v, exit code %d", ended, status.ExitStatus())
			}
		})
	}
}
