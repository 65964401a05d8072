package main

import (
	"os"
	"runtime/debug"
)

// The heap limits keep the whole process within 256 MB on recordings of any size.
// GOMEMLIMIT overrides them. An index takes some 60 MB beside the heap; who has none may
// leave most of them to the heap, which is collected less often then.
const (
	heapLimit      = 180 << 20
	heapLimitAlone = 205 << 20
)

// heapGrowth lets the heap grow to that limit before it is collected: with the
// caches nearly all that lives is there to stay, and looking at it often is dear.
const heapGrowth = 400

func limitMemory(limit int64) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
}
