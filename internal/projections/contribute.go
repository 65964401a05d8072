package projections

import (
	"weir/internal/contribution"
	"weir/internal/store"
	"weir/internal/value"
)

// Contribution is the amounts that one row adds to one target, over all tallies of the target's entity.
type Contribution struct {
	Target  store.Ref
	Amounts []value.Attr
}

// Offered are the offers of a batch to one target.
type Offered struct {
	Target store.Ref
	Offers []contribution.Offer // the last one of each source row
}
