package copies

import (
	"weir/internal/model"
	"weir/internal/projections"
)

// Becomes says what becomes of copies, and of a history.
func (Kind) Becomes(x *model.DerivationDiff) string {
	switch {
	case x.Kind == "copy":
		return projections.InPlace(x)
	case x.Kind != "history":
		return ""
	case x.What == model.Changed:
		return "entries are made by the new definition from the first program that has it; those before stay"
	}
	return "history, which no row tells; it is complete from the first program that has it"
}
