package runner_test

import (
	"fmt"
	"testing"

	"weir/internal/failtest"
	"weir/internal/runner"
)

// TestResultByDerivation says for each derivation how many records asked something of it, and how many of these were
// kept as dead letters: only the one that cannot use a record has it as dead.
func TestResultByDerivation(t *testing.T) {
	m, err := loadText(t, `
model: press
tables: {press: {key: [PK, SK]}}
entities:
  Author: {where: {type: Author}, key: {PK: "AUTHOR#{id}", SK: METADATA}, attributes: {name: string}}
  Post: {where: {type: Post}, key: {PK: "POST#{id}", SK: METADATA}, attributes: {author: string, words: number}}
  Log: {where: {type: Log}, key: {PK: LOG, SK: "{id}"}, attributes: {author: string, name: string}}
derive:
  Author.posts: {count: Post, to: {id: author}}
  Author.words: {sum: Post.words, to: {id: author}}
  Log:
    row: Post
    keep: [insert]
    set: {id: id, author: author, name: {follow: Author.name, by: {id: author}}}
`)
	failtest.On(t, err)
	h := newHarness(t, m)
	defer h.close()
	for _, line := range []string{
		`put press {"PK":"AUTHOR#a","SK":"METADATA","type":"Author","name":"Ada"}`,
		`put press {"PK":"POST#1","SK":"METADATA","type":"Post","author":"a","words":7}`,
		`put press {"PK":"POST#2","SK":"METADATA","type":"Post","author":"a","words":"many"}`,
		`put press {"PK":"POST#3","SK":"METADATA","type":"Post","author":"a"}`,
	} {
		failtest.On(t, h.write(line))
	}
	n, err := h.deliver(nil, all(h.pull()))
	failtest.On(t, err)
	n.DeadAt = nil
	want := runner.Result{Counts: runner.Counts{Applied: 3, Dead: 1}, By: map[string]runner.Counts{
		"Author.posts": {Applied: 3}, "Author.words": {Applied: 1, Dead: 1}, "Log": {Applied: 3}, "Log.name": {Applied: 1},
	}}
	if fmt.Sprint(n) != fmt.Sprint(want) {
		t.Errorf("%+v\nshould be\n%+v", n, want)
	}
}

// all are the numbers from 1 to n.
func all(n int) (out []int) {
	for i := range n {
		out = append(out, i+1)
	}
	return out
}
