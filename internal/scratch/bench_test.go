package scratch_test

import (
	"context"
	"testing"
	"time"

	"weir/internal/memory"
	"weir/internal/model"
	"weir/internal/runner"
	"weir/internal/scratch"
	"weir/internal/store/embedded"
	"weir/internal/system"
)

func BenchmarkVerifyNothing(b *testing.B) {
	m, err := model.Load("gallery")
	if err != nil {
		b.Fatal(err)
	}
	tables, err := system.Tables([]*model.Model{m})
	if err != nil {
		b.Fatal(err)
	}
	db, err := embedded.Open(b.TempDir(), tables, embedded.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	for b.Loop() {
		v := scratch.Verify{Model: m, Store: db, Now: time.Now, Memory: memory.Default}
		if err := v.Run(context.Background(), func(runner.Difference) {}); err != nil {
			b.Fatal(err)
		}
	}
}
