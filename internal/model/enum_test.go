package model

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestLongEnum: checking an enum takes as long as it has words, not as long as it has
// pairs of them.
func TestLongEnum(t *testing.T) {
	parse := func(words int) time.Duration {
		var b strings.Builder
		b.WriteString("model: words\ntables: {Words: {key: [id]}}\nentities:\n  Word: {key: {id: \"{id}\"}, attributes: {w: {type: string, enum: [")
		for i := range words {
			fmt.Fprintf(&b, "%d-%s, ", i, "word")
		}
		b.WriteString("last]}}}\n")
		began := time.Now()
		m, err := Parse("words.yaml", []byte(b.String()))
		if err != nil || len(m.Entities[0].Attributes[0].Enum) != words+1 {
			t.Fatal(err)
		}
		return time.Since(began)
	}
	// Eight times the words take eight times as long, and 64 times when each is held
	// against each. One quiet moment of several is enough to tell.
	var ratios []float64
	for range 8 {
		few, many := parse(10_000), parse(80_000)
		if r := float64(many) / float64(few); r < 24 {
			return
		} else {
			ratios = append(ratios, r)
		}
	}
	t.Errorf("eight times the words take %.0f times as long", ratios)
}
