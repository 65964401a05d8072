// Package clitest holds the command line of a program against what docs/guide/cli.md promises.
package clitest

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"weir/internal/cli"
)

// others are variables that functions or servers read and that no flag may have, since they would
// mean something else there.
var others = []string{"WEIR_MODEL", "WEIR_QUERIES", "WEIR_KEYS"}

// meant is, by variable, the flag that was found first.
var meant = map[string]*kong.Flag{}

// means checks that a variable means the same for each command: flags of one type, of which one has all values of the
// other.
func means(t *testing.T, node *kong.Node, f *kong.Flag) {
	for _, name := range f.Envs {
		first := meant[name]
		if first == nil {
			meant[name], first = f, f
		}
		fewer, more := f.EnumSlice(), first.EnumSlice()
		if len(fewer) > len(more) {
			fewer, more = more, fewer
		}
		if f.Target.Type() != first.Target.Type() || slices.ContainsFunc(fewer, func(v string) bool { return !slices.Contains(more, v) }) || len(fewer) == 0 && len(more) > 0 {
			t.Errorf("%s --%s: %s means something else for another command; give it a name of its own", node.FullPath(), f.Name, name)
		}
	}
}

// acts finds the flags of a single act on the page.
var acts = regexp.MustCompile("single act have no variable: ([^.]+)")

// Environment checks each flag of each command: its variable is its name behind WEIR_ and is named in
// help, or it has none and the page has it among those of a single act. Help does not print what a
// variable is set to. page is the path of docs/guide/cli.md.
func Environment(t *testing.T, page string, program func() *cli.Program) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := acts.FindSubmatch(text)
	if found == nil {
		t.Fatalf("%s lists no flags without a variable", page)
	}
	single := strings.Split(strings.ReplaceAll(string(found[1]), "`", ""), ", ")
	for _, flag := range single {
		if !bytes.Contains(text, []byte("      "+flag)) {
			t.Errorf("%s has %s among the flags without a variable, and no program has it", page, flag)
		}
	}
	parser, err := program().Parser(&bytes.Buffer{}, &bytes.Buffer{}, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	const secret = "5ecret"
	nodes, checked := []*kong.Node{parser.Model.Node}, 0
	for i := 0; i < len(nodes); i++ {
		node := nodes[i]
		nodes = append(nodes, node.Children...)
		for _, f := range node.Flags {
			if f.Name == "help" || f.Name == "version" {
				continue
			}
			checked++
			want := "WEIR_" + strings.ToUpper(strings.ReplaceAll(f.Name, "-", "_"))
			ofCommand := "WEIR_" + strings.ToUpper(node.Name) + strings.TrimPrefix(want, "WEIR")
			means(t, node, f)
			switch act := slices.Contains(single, "--"+f.Name); {
			case act && len(f.Envs) > 0:
				t.Errorf("%s --%s has %q; the page says that it has none", node.FullPath(), f.Name, f.Envs)
			case !act && !slices.Equal(f.Envs, []string{want}) && !slices.Equal(f.Envs, []string{ofCommand}):
				t.Errorf("%s --%s has %q, should have %s, or %s where that means something else", node.FullPath(), f.Name, f.Envs, want, ofCommand)
			case slices.Contains(others, want):
				t.Errorf("%s --%s: %s means something else", node.FullPath(), f.Name, want)
			}
			for _, name := range f.Envs {
				t.Setenv(name, secret)
			}
		}
	}
	if checked == 0 {
		t.Error("the program has no flags")
	}
	for _, node := range nodes {
		if node.Hidden {
			continue
		}
		var out, said bytes.Buffer
		asked := append(strings.Fields(node.FullPath())[1:], "--help")
		if code := program().Run(context.Background(), asked, &out, &said, nil); code != cli.Good || strings.Contains(out.String()+said.String(), secret) {
			t.Errorf("%s --help: %d\n%s%s", node.FullPath(), code, out.String(), said.String())
		}
		help := strings.Join(strings.Fields(out.String()), " ")
		for _, f := range node.Flags {
			for _, name := range f.Envs {
				if !f.Hidden && !strings.Contains(help, "($"+name+")") {
					t.Errorf("%s --help does not name %s", node.FullPath(), name)
				}
			}
		}
	}
}
