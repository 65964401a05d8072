package main

import "testing"

func TestSigns(t *testing.T) {
	for text, want := range map[string]int{
		"for who decides himself when it goes on":      1,
		"Who asks too often has to wait.":              1,
		"It is read; who comes late sees nothing new.": 1,
		"Who may ask?":                                  0,
		"A process that sleeps loses its lease.":        0,
		"the user who wrote it":                         0,
		"told anew amid a call, be it late":             3,
		"the row is there.":                             1,
		"is there a row?":                               0,
		"he takes his shard":                            1,
		"when the change comes by in the stream":        1,
		"`nobody` [here](nobody.md) https://nobody.com": 0,
		"Nobody, or somebody":                           1,
	} {
		if hits := searchLine("x", 1, text); len(hits) != want {
			t.Errorf("%q: %v, not %d", text, hits, want)
		}
	}
	if hits := searchMarkdown("x", "a\n```go\nnobody\n```\nnobody\n```text\nnobody\n```\n"); len(hits) != 2 || hits[0].line != 5 || hits[1].line != 7 {
		t.Errorf("markdown: %v", hits)
	}
	if hits := searchSource("x", "package x // of somebody\n\nvar nobody = `\nnobody`\n"); len(hits) != 2 || hits[0].line != 1 || hits[1].line != 4 {
		t.Errorf("source: %v", hits)
	}
}
