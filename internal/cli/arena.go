//go:build !cgo || !linux

package cli

// giveBack does nothing: a program without cgo has no memory of the C library.
func giveBack() {}
