package build_test

import (
	"fmt"
	"strings"
	"testing"

	"weir/internal/owntable"
)

const twoRules = `model: twos
tables:
  twos: {key: [PK, SK]}
entities:
  Rating: {where: {type: Rating}, key: {PK: "USER#{user}", SK: "RATING#{id}"}}
  Review: {where: {type: Review}, key: {PK: "USER#{user}", SK: "REVIEW#{id}"}}
  Card: {where: {type: Card}, key: {PK: "A#{user}", SK: "CARD#{kind}#{id}"}}
derive:
  Card(a): {row: Rating, set: {user: user, kind: =rating, id: id}}
  Card(b): {row: Review, set: {user: user, kind: =review, id: id}}
`

// TestTwoRulesInOneEntity: two rules make copies of one entity. An audit finds all of them right.
func TestTwoRulesInOneEntity(t *testing.T) {
	f := open(t, load(t, twoRules))
	for i := range 20 {
		f.write("PK", "USER#1", "SK", fmt.Sprint("RATING#", i), "type", "Rating")
		f.write("PK", "USER#1", "SK", fmt.Sprint("REVIEW#", 100+i), "type", "Review")
	}
	f.unread()
	f.unbuilt()
	cards := func(when string) {
		n := 0
		for key := range f.rows(f.table) {
			if strings.Contains(key, "CARD#") {
				n++
			}
		}
		if n != 40 {
			t.Errorf("%s: %d cards, want 40", when, n)
		}
	}
	f.build(owntable.BuildLive, allNames(f.model)...)
	cards("live")
	f.catchUp()
	f.clock.Add(25)
	f.build(owntable.BuildVerified, allNames(f.model)...)
	cards("verified")
	f.catchUp()
	cards("verified, and applied")
	f.verified()
}

var twoOfOneSource = strings.Replace(strings.Replace(twoRules, `"RATING#{id}"}}`, `"RATING#{id}"}, attributes: {place: string}}`, 1), `derive:
  Card(a): {row: Rating, set: {user: user, kind: =rating, id: id}}
  Card(b): {row: Review, set: {user: user, kind: =review, id: id}}
`, `derive:
  Card(a): {row: Rating, where: {place: a}, set: {user: user, kind: place, id: id}}
  Card(b): {row: Rating, where: {place: b}, set: {user: user, kind: place, id: id}}
`, 1)

// TestTwoRulesOfOneSource is the same of one source, whose rows pass the tests of one rule or of the other.
func TestTwoRulesOfOneSource(t *testing.T) {
	f := open(t, load(t, twoOfOneSource))
	for i := range 20 {
		f.write("PK", "USER#1", "SK", fmt.Sprint("RATING#", i), "type", "Rating", "place", []string{"a", "b"}[i%2])
	}
	f.unread()
	f.unbuilt()
	f.build(owntable.BuildLive, allNames(f.model)...)
	f.catchUp()
	f.verified()
	f.clock.Add(25)
	f.build(owntable.BuildVerified, allNames(f.model)...)
	f.catchUp()
	f.verified()
}

// TestDryRunOfLevels: the dry run of builds with copies of copies, which follow values, says within a tenth what the build takes.
func TestDryRunOfLevels(t *testing.T) {
	f := open(t, load(t, shared))
	f.sharedRows(10, 40)
	f.billed("set of levels") // in one segment
}

// TestLeftIsCountedOnce: what cannot be put right is counted once.
func TestLeftIsCountedOnce(t *testing.T) {
	f := open(t, load(t, shared))
	f.write("PK", "A#7", "SK", "CARD#7", "type", "Card", "title", "of an application") // which weir did not write
	f.sharedRows(2, 2)
	b := f.builder(allNames(f.model)...)
	b.Again = false
	said, err := f.builder(allNames(f.model)...).Estimate(t.Context())
	f.ok(err)
	_, err = b.Run(t.Context())
	f.ok(err)
	if n := b.Done().Left; n != 1 || said.Left != 1 {
		t.Errorf("%d are left, said %d, want 1", n, said.Left)
	}
}
