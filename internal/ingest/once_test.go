package ingest_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestLifeOfAKey: an idempotency key is remembered for 48 hours from its use, whatever
// times are in the row that it made, and then forgotten.
func TestLifeOfAKey(t *testing.T) {
	for _, one := range []struct{ name, model, line string }{
		{"made long ago", "wardrobe", `{"op":"create","entity":"Item","item":{"UserId":"u","Name":"Hat","Category":"hats","CreatedAt":"2020-01-01T00:00:00Z"},"idempotencyKey":"k"}`},
		{"made in the future", "wardrobe", `{"op":"create","entity":"Item","item":{"UserId":"u","Name":"Hat","Category":"hats","CreatedAt":"2099-01-01T00:00:00Z"},"idempotencyKey":"k"}`},
		{"kept in our table", "gallery", `{"op":"put","entity":"Album","item":{"id":"a","title":"A","createdAt":"2020-01-01T00:00:00Z"},"idempotencyKey":"k"}`},
	} {
		t.Run(one.name, func(t *testing.T) {
			w := newWorld(t, one.model)
			var got []bool
			for _, pause := range []time.Duration{0, 0, time.Minute, 47 * time.Hour, time.Hour} {
				w.now = w.now.Add(pause)
				r := w.Do(t.Context(), readAll(t, []string{one.line}))[0]
				if r.Err != nil {
					t.Fatal(r.Err)
				}
				got = append(got, r.Repeated)
			}
			if d := cmp.Diff([]bool{false, true, true, true, false}, got); d != "" {
				t.Error(d)
			}
		})
	}
}
