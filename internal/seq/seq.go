// Package seq has functions that package slices lacks.
package seq

import "slices"

// Map returns a list of a function's results for the elements of a list, in its order. It is never nil.
func Map[T, R any](list []T, of func(T) R) []R {
	out := make([]R, len(list))
	for i, x := range list {
		out[i] = of(x)
	}
	return out
}

// Flat returns the lists of a function's results for the elements of a list, one behind the other; nil if all are empty.
func Flat[T, R any](list []T, of func(T) []R) (out []R) {
	for _, x := range list {
		out = append(out, of(x)...)
	}
	return out
}

// Where returns the elements of a list of which is returns true, in its order; nil if there is none.
func Where[T any](list []T, is func(T) bool) (out []T) {
	for _, x := range list {
		if is(x) {
			out = append(out, x)
		}
	}
	return out
}

// At returns the first element of a list, in its place, of which is returns true, nil if there is none.
func At[T any](list []T, is func(*T) bool) *T {
	for i := range list {
		if is(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

// Find returns the first element of a list of which is returns true, the zero value if there is none.
func Find[T any](list []T, is func(T) bool) (found T) {
	if i := slices.IndexFunc(list, is); i >= 0 {
		found = list[i]
	}
	return found
}
