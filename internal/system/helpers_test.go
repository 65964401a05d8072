package system_test

import (
	"context"

	"weir/internal/system"
	"weir/internal/verify"
)

func verifyAll(s *system.System) ([]verify.Difference, error) {
	var out []verify.Difference
	err := s.Verify(s.Models[0]).Run(context.Background(), func(d verify.Difference) { out = append(out, d) })
	return out, err
}
