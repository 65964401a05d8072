package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// memory measures the highest resident memory of the built program while it replays a large
// recording, with search and without.
func (b *bench) memory() error {
	const goal = 256
	records := pick(b, 80_000, 800_000) // 100 MB, 1 GB
	need := int64(records) * 8000
	if free, err := freeBytes(b.dir); err != nil || free < need {
		b.table.add(line{what: "memory of a replay", peer: fmt.Sprintf("skipped: it wants %d MB of disk in %s (free: %d MB, %v)", need>>20, b.dir, free>>20, err)})
		return nil
	}
	bin, err := filepath.Abs(b.bin)
	if err == nil {
		_, err = os.Stat(bin)
	}
	if err != nil {
		return fmt.Errorf("build the program first: %w", err)
	}
	rec, err := b.recording(records)
	if err != nil {
		return err
	}
	for _, search := range []bool{false, true} {
		var flags []string
		if !search {
			flags = []string{"--no-search"}
		}
		peak, c, err := b.peak(bin, rec, flags...)
		took := c.wall
		if err != nil {
			return err
		}
		what := fmt.Sprintf("memory, replay of %d MB, %s", rec.bytes/1e6, map[bool]string{true: "with search", false: "without search"}[search])
		b.say("%s: %d MB, %.0f records/s", what, peak>>20, float64(rec.records)/took.Seconds())
		b.table.add(line{
			what: what, figure: fmt.Sprintf("%d MB", peak>>20), goal: fmt.Sprintf("≤ %d MB", goal), met: peak <= goal<<20,
			peer: fmt.Sprintf("(at %.0f records/s)", float64(rec.records)/took.Seconds()),
		})
	}
	return nil
}

func freeBytes(dir string) (int64, error) {
	var s syscall.Statfs_t
	err := syscall.Statfs(dir, &s)
	return int64(s.Bavail) * int64(s.Bsize), err
}

// peak runs a replay and returns its highest resident memory, and what it cost. It polls the kernel's VmHWM until
// the process ends, because the value that wait4 reports starts at what this program had when
// it started the other one.
func (b *bench) peak(bin string, rec recording, flags ...string) (most int64, c cost, err error) {
	data, err := os.MkdirTemp(b.dir, "data-")
	if err != nil {
		return 0, c, err
	}
	defer os.RemoveAll(data)
	args := append([]string{"replay", rec.model, rec.path, "--data", data, "-o", "json", "--memory", b.size.String()}, flags...)
	cmd := exec.CommandContext(b.ctx, bin, args...)
	var talk bytes.Buffer
	cmd.Stderr = &talk
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, c, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case err := <-done:
			if cmd.ProcessState != nil {
				c = cost{time.Since(start), cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()}
			}
			if err == nil && most == 0 {
				err = errors.New("the process ended before its memory could be read")
			}
			if err != nil {
				err = fmt.Errorf("%w\n%s", err, talk.String())
			}
			return most, c, err
		case <-time.After(20 * time.Millisecond):
			most = max(most, highWater(cmd.Process.Pid))
		}
	}
}

// highWater returns a process's VmHWM in bytes, 0 if it has ended.
func highWater(pid int) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, ok := strings.Cut(string(status), "VmHWM:")
	if !ok {
		return 0
	}
	kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		return 0
	}
	return kb << 10
}
