package ingest

import (
	"errors"
	"strings"
	"testing"

	"weir/internal/value"
)

// TestDepth: values in a command may be nested as deep as values in a row.
func TestDepth(t *testing.T) {
	for depth, good := range map[int]bool{value.MaxDepth: true, value.MaxDepth + 1: false} {
		item := `{"x":` + strings.Repeat(`[`, depth) + strings.Repeat(`]`, depth) + `}`
		_, byItself := ReadItem([]byte(item))
		_, byCommand := ReadCommand([]byte(`{"op":"put","entity":"E","item":` + item + `}`))
		if (byItself == nil) != good || (byCommand == nil) != good {
			t.Errorf("%d deep: %v, %v", depth, byItself, byCommand)
		}
		var a, b *Refusal
		if !good && errors.As(byItself, &a) && errors.As(byCommand, &b) && a.Error() != b.Error() {
			t.Errorf("%v is not %v", b, a)
		}
	}
}
