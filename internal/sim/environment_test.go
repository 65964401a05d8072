package sim

import (
	"testing"

	"weir/internal/cli/clitest"
)

// TestEnvironment: what a flag can say, its variable can.
func TestEnvironment(t *testing.T) {
	clitest.Environment(t, "../../docs/guide/cli.md", theProgram)
}
