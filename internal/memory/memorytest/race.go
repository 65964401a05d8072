//go:build race

package memorytest

// instrumented is how many times as much memory a program may take with the race detector,
// which shadows every byte.
const instrumented = 10
