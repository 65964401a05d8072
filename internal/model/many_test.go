package model

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"weir/internal/soaktest"
)

// TestManyEntities: lint of thousands of entities takes seconds, also where all overlap, and says one thing of each.
func TestManyEntities(t *testing.T) {
	n := soaktest.Count(1500, 4000)
	for name, entity := range map[string]string{
		"keys apart": `{where: {t: E#}, key: {PK: "E#/{id}", SK: X}, attributes: {a: string}}`,
		"one shape":  `{key: {PK: "E/{id}", SK: X}}`,
		"one key":    `{where: {t: E#}, key: {PK: "{id}", SK: X}}`,
	} {
		var b strings.Builder
		b.WriteString("model: many\ntables: {rows: {key: [PK, SK]}}\nentities:\n")
		for i := range n {
			b.WriteString(strings.ReplaceAll("  E#: "+entity+"\n", "#", strconv.Itoa(i)))
		}
		began := time.Now()
		_, err := Parse("many.yaml", []byte(b.String()))
		if took := time.Since(began); took > 30*time.Second { // it took minutes
			t.Errorf("%s: %v", name, took)
		}
		if said := strings.Count(fmt.Sprint(err), "\n") + 1; said > n {
			t.Errorf("%s: %d problems", name, said)
		}
	}
}
