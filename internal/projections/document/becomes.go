package document

import (
	"weir/internal/model"
)

// Becomes says what becomes of a search index.
func (Kind) Becomes(x *model.DerivationDiff) string {
	if x.Kind != "search" {
		return ""
	}
	return "all search indexes of the model are filled from the rows, beside the old ones"
}
