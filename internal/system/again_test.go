package system_test

import (
	"testing"
	"time"

	"weir/internal/failtest"
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
	failtest.On(t, b.Release(t.Context()))
	if s.Index != nil {
		failtest.On(t, s.IndexAgain(t.Context(), part, func(system.Filling) {}))
	}
	failtest.On(t, catchUp(t.Context(), s))
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
