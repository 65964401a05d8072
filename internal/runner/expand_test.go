package runner_test

import (
	"fmt"
	"strconv"
	"strings"
)

// expand writes out lines like "1..80 put T {…%d…}": one for each number.
func expand(text string) ([]string, error) {
	var out []string
	for _, line := range strings.Split(strings.TrimSpace(text), "\n") {
		span, rest, _ := strings.Cut(line, " ")
		from, to, many := strings.Cut(span, "..")
		if !many {
			out = append(out, line)
			continue
		}
		a, errA := strconv.Atoi(from)
		b, errB := strconv.Atoi(to)
		if errA != nil || errB != nil {
			return nil, fmt.Errorf("%q is no range of numbers", span)
		}
		for i := a; i <= b; i++ {
			out = append(out, strings.ReplaceAll(rest, "%d", strconv.Itoa(i)))
		}
	}
	return out, nil
}
