package system_test

import (
	"testing"
	"time"

	"weir/internal/soaktest"
	"weir/internal/system"
)

// buildAgain does what build --again does, and applies what comes of it.
func buildAgain(t *testing.T, s *system.System) {
	t.Helper()
	part := s.Models[0]
	b := part.Builder()
	b.Names, b.Again, b.Asked, b.Segments = part.Model.InBuildOrder(func(string) bool { return true }), true, time.Now(), 8
	if _, err := b.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.Index != nil {
		if err := s.IndexAgain(t.Context(), part, func(system.Filling) {}); err != nil {
			t.Fatal(err)
		}
	}
	if err := catchUp(t.Context(), s); err != nil {
		t.Fatal(err)
	}
}

// TestAgain: whatever is spoilt, build --again puts right.
func TestAgain(t *testing.T) {
	soaktest.Calm(t)
	eachRecording(t, []string{"wardrobe"}, onEmbedded, func(t *testing.T, s *system.System) {
		for _, sp := range spoilsOf(s) {
			t.Run(sp.what, func(t *testing.T) {
				sp.do(t, s)
				buildAgain(t, s)
				verifyNothing(t, s)
			})
		}
	})
}
