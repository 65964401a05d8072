package aggregate

import "weir/internal/owntable"

// Set is the different values themselves, of any number: nodes in the own table count
// them, and rows of the set's own entity show them.
var Set = &Aggregate{Keyword: "set", Of: Scalars, Type: "strings", Adds: addMember(owntable.MemberAmount)}
