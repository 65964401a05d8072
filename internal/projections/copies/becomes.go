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

// Remains returns the rows that the rules of a name make.
func (Kind) Remains(m *model.Model, d *model.Derivation) (is projections.Remains) {
	told := true
	for _, r := range m.Rows {
		if r.Name == d.Name {
			is, told = is.With(projections.Remains{Makes: r.CanMake}), told && r.Keyed()
		}
	}
	is.Told = told && is.Makes != nil
	return is
}
