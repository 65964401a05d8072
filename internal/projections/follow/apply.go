package follow

import (
	"weir/internal/runner"
)

// Kind is the entry of this kind in the list of kinds.
type Kind struct{ runner.Base }

// Name returns "follow".
func (Kind) Name() string { return "follow" }
