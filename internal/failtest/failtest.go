// Package failtest ends a test at an error that it does not expect.
package failtest

import "testing"

// On ends t, with err as its message, unless err is nil.
func On(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
