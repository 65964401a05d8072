package model

import (
	"fmt"
	"maps"
	"math/rand/v2"
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
		"ends apart": `{where: {t: E#}, key: {PK: "{id}", SK: "{at}/E#"}}`,
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

// TestFirstPairs: of entities whose keys and wheres are drawn from few texts, the pairs are those that a look at all pairs finds,
// and fewer are looked at.
func TestFirstPairs(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	asked, all := 0, 0
	for range 300 {
		b := "model: many\ntables: {rows: {key: [PK, SK]}}\nentities:\n"
		for i := range 8 {
			text := func() string { return []string{"", "A", "AB", "ABA", "B", "BA"}[rng.IntN(6)] }
			where := []string{"", "where: {t: A}, ", "where: {t: B}, ", "where: {t: [A, B]}, ", "where: {u: A}, ", "where: {t: present}, "}[rng.IntN(6)]
			b += fmt.Sprintf("  E%d: {%skey: {PK: \"%s{id}%s\", SK: {template: \"%s{at}%s\"%s}}}\n", i, where, text(), text(), text(), text(), []string{"", ", case: lower"}[rng.IntN(2)])
		}
		r := &reader{file: "many.yaml"}
		m := compileModel(r, r.parseDocument([]byte(b)))
		c, meets := &compiler{Model: m}, func(a, b *Entity) bool { return !testsExclude(a.Where, b.Where) && keyCases(a, b, anyTexts) }
		got, want := map[*Entity]*Entity{}, map[*Entity]*Entity{}
		c.firstPairs(meets, true, func(a, b *Entity) { got[b] = a })
		for i, b := range m.Entities {
			for _, a := range m.Entities[:i] {
				if want[b] == nil && meets(a, b) {
					want[b] = a
				}
			}
		}
		if !maps.Equal(got, want) {
			t.Fatalf("%s\n%v, want %v", b, got, want)
		}
		pairs := 0
		c.firstPairs(func(a, b *Entity) bool { pairs++; return false }, true, nil)
		asked, all = asked+pairs, all+len(m.Entities)*(len(m.Entities)-1)/2
	}
	if asked > all/2 {
		t.Errorf("%d of %d pairs were looked at", asked, all)
	}
}
