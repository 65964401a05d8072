package document

import (
	"weir/internal/runner"
)

// Kind is the entry of this kind in the list of kinds.
type Kind struct{ runner.Base }

// Name returns "document".
func (Kind) Name() string { return "document" }
