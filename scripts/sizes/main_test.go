package main

import "testing"

func TestCodeLines(t *testing.T) {
	text := `// Package p is a comment.
package p

/* a comment
of two lines */
var a = 1 // one

var s = ` + "`first\n\nthird`" + `

func f() {
	// Nothing.
}
`
	if n := codeLines([]byte(text)); n != 6 {
		t.Errorf("%d lines of code: want package, a, two of s, two of f", n)
	}
}

func TestParts(t *testing.T) {
	for file, want := range map[string]string{
		"cmd/projector/main.go":                "product",
		"internal/arch_test.go":                "tests",
		"internal/runner/runner.go":            "product",
		"internal/sim/world.go":                "support",
		"internal/sim/oracle/oracle.go":        "support",
		"internal/store/storetest/contract.go": "support",
		"scripts/sizes/main_test.go":           "tests",
		"scripts/sizes/main.go":                "scripts",
		"examples/shop/main.go":                "",
		"weir.go":                              "product",
		"weirtest/weirtest.go":                 "product",
		"example_test.go":                      "tests",
	} {
		if got := partOf(file); got != want {
			t.Errorf("%s is in %q, want %q", file, got, want)
		}
	}
}

func TestExportedNames(t *testing.T) {
	n, err := exportedNames("p.go", []byte("package p\ntype T int\nfunc (T) M() {}\nfunc (T) m() {}\nfunc F() {}\nconst (\n\tA = iota\n\tb\n)\nvar x, Y int\n"))
	if n != 5 || err != nil {
		t.Errorf("%d exported names, %v: want T, M, F, A and Y", n, err)
	}
}
