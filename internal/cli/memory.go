package cli

import (
	"os"
	"runtime/debug"
)

// The heap limits keep the whole process within 256 MB on recordings of any size.
// An index takes some 60 MB beside the heap; who has none may leave most of them to the
// heap, which is collected less often then.
const (
	heapLimit      = 180 << 20
	heapLimitAlone = 205 << 20
)

// heapGrowth lets the heap grow to that limit before it is collected: with the
// caches nearly all that lives is there to stay, and looking at it often is dear.
const heapGrowth = 400

// LimitMemory sets the heap limit of a process that has an index beside its heap, or
// none. GOGC and GOMEMLIMIT override it.
func LimitMemory(index bool) {
	limit := int64(heapLimit)
	if !index {
		limit = heapLimitAlone
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
}
