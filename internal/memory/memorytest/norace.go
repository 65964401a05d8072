//go:build !race

package memorytest

const instrumented = 1
