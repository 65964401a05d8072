//go:build linux

package projectorcli

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"weir/internal/deadletter"
	"weir/internal/failtest"
)

// TestDeadOnTerminal: dead list fits the lines of a terminal, and prints all elsewhere.
func TestDeadOnTerminal(t *testing.T) {
	dir, target, reason := t.TempDir(), strings.Repeat("long ", 50), strings.Repeat("grün ", 60)+"end"
	s := openGallery(t, dir)
	for _, kind := range []deadletter.Kind{deadletter.Gap, deadletter.Notification} {
		if _, err := s.Models[0].Runner.Letters().Keep(t.Context(), deadletter.Letter{Kind: kind, Target: target, Reason: reason, Source: "file.json:1"}); err != nil {
			t.Fatal(err)
		}
	}
	failtest.On(t, s.Close())
	list := func(to *os.File) {
		run(t.Context(), []string{"dead", "list", "gallery", "--data", dir}, strings.NewReader(""), to, os.Stderr)
	}
	for _, columns := range []int{20, 80, 200} {
		terminal, line := pseudoTerminal(t, uint16(columns))
		list(line)
		line.Close()
		shown := bufio.NewReader(terminal)
		for range 2 {
			l, err := shown.ReadString('\n')
			if l = strings.TrimRight(l, "\r\n"); err != nil || utf8.RuneCountInString(l) != columns || !strings.HasSuffix(l, "…") || columns > 20 && !strings.Contains(l, "long …  ") {
				t.Errorf("%d columns: %q, %v", columns, l, err)
			}
		}
	}
	file, err := os.CreateTemp(dir, "")
	failtest.On(t, err)
	list(file)
	if out, err := os.ReadFile(file.Name()); err != nil || bytes.Count(out, []byte(strings.TrimSpace(target))) != 2 || bytes.Count(out, []byte(reason+"\n")) != 2 {
		t.Errorf("%s, %v", out, err)
	}
}

// pseudoTerminal returns both ends of a terminal: the screen and what programs write to.
func pseudoTerminal(t *testing.T, columns uint16) (screen, line *os.File) {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { screen.Close() })
	n, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(screen.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns})
	}
	if err == nil {
		line, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { line.Close() })
	return screen, line
}
