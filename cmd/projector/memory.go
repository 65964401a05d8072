package main

import (
	"os"
	"runtime/debug"
)

// heapLimit keeps the whole process, with the caches of store and index beside the
// heap, within 256 MB on recordings of any size. GOMEMLIMIT overrides it.
const heapLimit = 165 << 20

// heapGrowth lets the heap grow to that limit before it is collected: with the
// caches nearly all that lives is there to stay, and looking at it often is dear.
const heapGrowth = 400

func limitMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(heapLimit)
	}
}
