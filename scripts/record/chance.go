package main

import (
	"encoding/hex"
	"fmt"
	"math"
	"time"
)

// The application draws these from the seed: times, ids, names.

// scaledNumber is a number of things, by the scale.
func (a *app) scaledNumber(n int) int { return max(1, int(math.Round(float64(n)*a.scale))) }

// tickClock returns the time of the application's clock, which moves on by itself and never gives a time twice.
func (a *app) tickClock() string {
	a.clock = a.clock.Add(time.Duration(1+a.rand.IntN(240_000)) * time.Millisecond)
	return a.clock.Format("2006-01-02T15:04:05.000Z")
}

func (a *app) chance(p float64) bool { return a.rand.Float64() < p }

// randomBytes is a text of n random bytes.
func (a *app) randomBytes(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(a.rand.IntN(256))
	}
	return string(b)
}

func (a *app) randomHex(n int) string { return hex.EncodeToString([]byte(a.randomBytes(n))) }

func (a *app) randomUUID() string {
	h := a.randomHex(16)
	return fmt.Sprintf("%s-%s-4%s-a%s-%s", h[:8], h[8:12], h[13:16], h[17:20], h[20:])
}

// nextULID returns an id that grows with the clock, as ULIDs do.
func (a *app) nextULID() string {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	a.tickClock()
	out := make([]byte, 26)
	ms := a.clock.UnixMilli()
	for i := 9; i >= 0; i-- {
		out[i] = digits[ms%32]
		ms /= 32
	}
	for i := 10; i < 26; i++ {
		out[i] = digits[a.rand.IntN(32)]
	}
	return string(out)
}

// pickOne picks an element; the slice must not be empty.
func pickOne[T any](a *app, from []T) T { return from[a.rand.IntN(len(from))] }

// pickSome picks up to n different elements, in their order.
func pickSome[T any](a *app, n int, from []T) []T {
	var out []T
	for i, v := range from {
		if left := len(from) - i; a.rand.IntN(left) < n-len(out) {
			out = append(out, v)
		}
	}
	return out
}

// A deed is something the application does now and then.
type deed struct {
	weight int
	do     func()
}

// doWeighted does deeds, n of them, drawn by weight.
func (a *app) doWeighted(n int, deeds []deed) {
	total := 0
	for _, d := range deeds {
		total += d.weight
	}
	for range n {
		at := a.rand.IntN(total)
		for _, d := range deeds {
			if at -= d.weight; at < 0 {
				d.do()
				break
			}
		}
	}
}

var (
	given   = []string{"Anna", "Zoë", "José", "Łukasz", "Søren", "Мария", "Олег", "美咲", "健太", "위", "ليلى", "נועה", "Siân", "Dvořák", "Nguyễn", "O'Brien", "Ingrid", "Mehmet", "Aoife", "Ravi"}
	places  = []string{"Lisbon", "Kraków", "Malmö", "Porto", "Galway", "Chiang Mai", "Oaxaca", "Nuuk", "Tromsø", "Zürich", "Hội An", "Łódź"}
	adverbs = []string{"quiet", "golden", "misty", "crowded", "late", "early", "blue", "rainy", "forgotten", "last", "first", "long"}
	nouns   = []string{"harbour", "morning", "market", "rooftop", "garden", "tram", "river", "staircase", "museum", "kitchen", "bridge", "balcony"}
	tagPool = []string{"travel", "family", "b&w", "35mm", "street", "night", "portrait", "macro", "été", "旅行", "🌊", "work"}
)

// drawTitle returns a title such as people give, never with a word that the search checks look for.
func (a *app) drawTitle() string {
	return fmt.Sprintf("%s %s, %s", pickOne(a, adverbs), pickOne(a, nouns), pickOne(a, places))
}
