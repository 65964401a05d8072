package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cost is the time and memory that a command took, with the processes that it started and waited for.
type cost struct {
	wall, cpu  time.Duration
	peak, disk int64 // bytes
}

// measure runs a command. Its peak is the most memory that it and the processes below it had at a time, each page
// that several share divided among them.
func measure(cmd *exec.Cmd) (c cost, err error) {
	var talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &talk, &talk
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return c, err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	for {
		select {
		case err := <-done:
			c.wall = time.Since(start)
			used := cmd.ProcessState.SysUsage().(*syscall.Rusage)
			c.cpu = time.Duration(used.Utime.Nano() + used.Stime.Nano())
			if err != nil {
				err = fmt.Errorf("%w\n%s", err, talk.Bytes())
			}
			return c, err
		case <-time.After(50 * time.Millisecond):
			c.peak = max(c.peak, resident(cmd.Process.Pid))
		}
	}
}

// resident returns the proportional set size of a process and of all below it; 0 if it has ended.
func resident(pid int) (sum int64) {
	dir := fmt.Sprintf("/proc/%d", pid)
	if text, err := os.ReadFile(dir + "/smaps_rollup"); err == nil {
		if _, rest, ok := strings.Cut(string(text), "\nPss:"); ok {
			kb, _ := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			sum = kb << 10
		}
	}
	lists, _ := filepath.Glob(dir + "/task/*/children")
	for _, list := range lists {
		text, _ := os.ReadFile(list)
		for _, child := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(child); err == nil {
				sum += resident(n)
			}
		}
	}
	return sum
}

// size returns how many bytes the files below a directory take.
func size(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		info, err := e.Info()
		if err == nil {
			sum += min(info.Size(), info.Sys().(*syscall.Stat_t).Blocks*512)
		}
		return err
	})
	return sum, err
}
