package cli

import (
	"io"
	"regexp"
	"strings"

	"weir/internal/model"
)

// Called is the name that the user types for a program: "weir" for projector, and "weir ingest" for ingest, if weir was started.
func Called(program string) string {
	switch {
	case model.Called == "projector":
		return program
	case program == "projector":
		return model.Called
	}
	return model.Called + " " + program
}

// commands finds the commands of the programs in a text for people; ingest and simulator may stand there as weir's already.
var commands = regexp.MustCompile(`\b(projector)(\s+)(replay|run|serve|dev|query|build|status|verify|why|dead|deploy|doctor|lint|init|test|cost|diff|schema|function)\b` +
	`|(?:\bweir )?\b(ingest)(\s+)(put|serve|backfill|migrate)\b|(?m:^( {4}|again: |)(simulator) )`)

// Typed returns a text with its commands as the user types them.
func Typed(text string) string {
	if model.Called == "projector" {
		return text
	}
	return commands.ReplaceAllStringFunc(text, func(c string) string {
		for _, program := range []string{"projector", "ingest", "simulator"} {
			if before, after, found := strings.Cut(c, program); found {
				return strings.TrimSuffix(before, "weir ") + Called(program) + after
			}
		}
		return c
	})
}

// calling writes texts with their commands as the user types them.
type calling struct{ to io.Writer }

// Write passes a text on.
func (c calling) Write(b []byte) (int, error) {
	_, err := c.to.Write([]byte(Typed(string(b))))
	return len(b), err
}
