package memory

import (
	"strings"
	"testing"
)

func TestLeft(t *testing.T) {
	for _, c := range []struct {
		limit int
		need  Need
		want  int // connections; 0 is a refusal
	}{
		{1024, Need{Store: true, Indexes: 2}, 1024 - 32 - 40 - 256 - 128},
		{256, Need{Store: true, Indexes: 1}, 256 - 32 - 40 - 74 - 64},
		{256, Need{Store: true, Indexes: 2}, 0},
		{1024, Need{Calls: 320}, 1024 - 32 - 320},
		{100, Need{Store: true}, 0},
		{unlimited, Need{Store: true, Indexes: 10}, unlimited - 32 - 40 - 512 - 640},
	} {
		got, err := left(c.limit, c.need)
		if got != c.want || (err != nil) != (c.want == 0) {
			t.Errorf("%d files, %+v: %d, %v; want %d", c.limit, c.need, got, err, c.want)
		}
		if err != nil && !strings.Contains(err.Error(), "ulimit -n") {
			t.Error(err)
		}
	}
	if n := Tables(); n < fewestTables || n > mostTables {
		t.Error(n)
	}
}
