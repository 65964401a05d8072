package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func freeBytes(dir string) (int64, error) {
	var s syscall.Statfs_t
	err := syscall.Statfs(dir, &s)
	return int64(s.Bavail) * int64(s.Bsize), err
}

// measurePeak runs a replay and returns its highest resident memory and its cost. It polls the kernel's VmHWM until
// the process ends, because the value that wait4 reports starts at what this program had when
// it started the other one.
func (b *bench) measurePeak(bin string, rec recording, flags ...string) (most int64, c cost, err error) {
	data, err := os.MkdirTemp(b.dir, "data-")
	if err != nil {
		return 0, c, err
	}
	defer os.RemoveAll(data)
	return b.runWatched(bin, append([]string{"replay", rec.model, rec.path, "--data", data, "-o", "json", "--memory", b.size.String()}, flags...)...)
}

// runWatched runs a program and returns its highest resident memory and its cost.
func (b *bench) runWatched(bin string, args ...string) (most int64, c cost, err error) {
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
