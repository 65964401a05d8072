//go:build cgo && linux

package cli

// #include <stdlib.h>
// #ifdef __GLIBC__
// #include <malloc.h>
// static void giveBack(void) { mallopt(M_ARENA_MAX, 1); mallopt(M_MMAP_THRESHOLD, 256 << 10); }
// #else
// static void giveBack(void) {}
// #endif
import "C"

// giveBack has the C library give memory back that is freed. By itself it keeps a heap for each thread, and
// large pieces in them: memory that Pebble frees of a memtable in one heap is then resident, and of no use in
// another. With it, memory outside Go's is about the size of Pebble's. Call it before other threads begin.
func giveBack() { C.giveBack() }
