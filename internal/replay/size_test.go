package replay

import "testing"

// TestRoomOfWindows: a window is larger on disk where four times as much is free, and never smaller than it may be anyway.
func TestRoomOfWindows(t *testing.T) {
	for _, c := range []struct {
		size       Size
		free, want int64
	}{
		{Size{Disk: 100}, 10_000, 100},              // never roomy
		{Size{Disk: 100, Roomy: 800}, 0, 100},       // not known
		{Size{Disk: 100, Roomy: 800}, 399, 100},     // little is free
		{Size{Disk: 100, Roomy: 800}, 2_000, 500},   // a quarter of it
		{Size{Disk: 100, Roomy: 800}, 100_000, 800}, // no more than that
	} {
		if got := c.size.windowOnDisk(c.free); got != c.want {
			t.Errorf("%+v with %d free: %d, want %d", c.size, c.free, got, c.want)
		}
	}
}
