package build_test

import (
	"context"
	"fmt"
	"testing"

	"weir/internal/build"
	"weir/internal/store"
)

// writesBetween is a store beside which an application writes rows before each page of 300 rows that is read of a table.
type writesBetween struct {
	store.Store
	table string
	write func()
}

func (s writesBetween) Query(ctx context.Context, q store.Query) (store.Page, error) {
	if q.Table == s.table {
		s.write()
		q.Limit = 300
	}
	return s.Store.Query(ctx, q)
}

// TestEstimateBesideAnApplication: a dry run says within a tenth what the build takes, also when an application
// adds and deletes rows while both of them read.
func TestEstimateBesideAnApplication(t *testing.T) {
	f := open(t, load(t, films))
	added, deleted := 0, 0
	write := func(n int) {
		for range n {
			f.write("PK", fmt.Sprint("USER#", added), "SK", "RATING#1", "type", "Rating", "movie", fmt.Sprint(added%9), "stars", added%6, "mood", "m")
			added++
		}
	}
	write(3000)
	for nr := range 9 {
		f.write("PK", fmt.Sprint("MOVIE#", nr), "SK", "METADATA", "type", "Movie")
	}
	f.unread()
	between := 0
	beside := func() {
		between++
		write(6)
		for range 4 {
			f.write("PK", fmt.Sprint("USER#", deleted*7), "SK", "RATING#1")
			deleted++
		}
	}
	builder := func() *build.Builder {
		b := f.builder("Movie")
		b.Segments = 1
		r := *b.Runner
		r.Store = writesBetween{f.Store, f.table, beside}
		b.Runner = &r
		return b
	}
	said, err := builder().Estimate(t.Context())
	f.ok(err)
	estimated := between
	b := builder()
	_, err = b.Run(t.Context())
	f.ok(err)
	took := b.Done()
	if estimated < 3 || between < 2*estimated {
		t.Fatalf("the application wrote %d times beside the dry run, and %d times beside the build", estimated, between-estimated)
	}
	for name, of := range map[string][2]int64{
		"rows": {said.Rows, took.Rows}, "puts": {said.Puts, took.Puts}, "write units": {said.Units, took.Units}, "read units": {said.ReadUnits(), took.ReadUnits()},
	} {
		if off := float64(of[0])/float64(of[1]) - 1; off > 0.1 || off < -0.1 {
			t.Errorf("%s: %d were estimated, and it took %d", name, of[0], of[1])
		}
	}
	f.catchUp()
	f.verified()
}
