package main

import (
	"os"
	"runtime/debug"
)

// heapLimit keeps the whole process, with the caches of store and index beside the
// heap, within 256 MB on recordings of any size. GOMEMLIMIT overrides it.
const heapLimit = 150 << 20

func limitMemory() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(heapLimit)
	}
}
