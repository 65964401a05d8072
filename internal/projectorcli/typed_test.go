package projectorcli

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"weir/internal/cli"
	"weir/internal/failtest"
	"weir/internal/ingestcli"
	"weir/internal/model"
	"weir/internal/soaktest"
	"weir/internal/stage"
	"weir/internal/system"
)

// inText finds commands in a text: the verb, and all behind it in its line, or in its string in an object of JSON.
var inText = regexp.MustCompile(`(?m)\bprojector ((?:(?:deploy|dead) )?[a-z]+)\b(.*?)(?:"}|$)`)

// isAbout reports whether what follows a command in a text shows that nobody is to type it.
func isAbout(rest string) bool {
	return strings.HasPrefix(rest, " --help") || strings.HasPrefix(rest, " has no flag")
}

// typable returns the words of a command that stands in a text, or why it cannot be typed as it stands: the words up to the
// sentence that goes on behind it, which have no hyphens.
func typable(verb, rest string) (words []string, err error) {
	args, sentence := wordsOf(rest)
	for n := len(args); n >= 0; n-- {
		words = append(strings.Fields(verb), args[:n]...)
		if slices.ContainsFunc(args[n:], func(w string) bool { return strings.HasPrefix(w, "--") }) {
			break
		}
		p, err := theProgram().Parser(io.Discard, io.Discard, func(int) {})
		if err != nil {
			return nil, err
		}
		if _, err := p.Parse(words); err == nil && (n == 0 || isModel(args[0])) {
			return words, nil
		}
	}
	return nil, fmt.Errorf("projector %s%s%s: cannot be typed so", verb, rest, sentence)
}

// isModel reports whether a word names a model, or stands for one as in a help text.
func isModel(word string) bool {
	return slices.Contains(model.Builtin(), word) || strings.HasSuffix(word, ".yaml") || word == strings.ToUpper(word)
}

// wordsOf splits a text into words as a shell does, up to the end of its first sentence.
func wordsOf(text string) (words []string, rest string) {
	for text = strings.TrimLeft(text, " "); text != "" && !strings.ContainsRune("|>#", rune(text[0])); text = strings.TrimLeft(text, " ") {
		word := ""
		for text != "" && text[0] != ' ' {
			if quoted, is := strings.CutPrefix(text, "'"); is {
				in, after, _ := strings.Cut(quoted, "'")
				word, text = word+in, after
				continue
			}
			word, text = word+text[:1], text[1:]
		}
		end := strings.TrimRight(word, ".,;:)`")
		if words = append(words, end); end != word || strings.HasSuffix(end, "(") {
			return words, text
		}
	}
	return words, ""
}

// placed are the flags of a command line that say where rows are.
func placed(words []string) (flags []string) {
	for i, w := range words {
		switch w {
		case "--aws":
			flags = append(flags, w)
		case "--data", "--stage", "--tables", "--opensearch", "--derive-in", "--server":
			if i+1 < len(words) && !(w == "--data" && filepath.Clean(words[i+1]) == system.DefaultData) {
				flags = append(flags, w+" "+words[i+1])
			}
		}
	}
	return flags
}

// untypable is the first command of what a command line has printed that cannot be typed as it stands, or is about rows elsewhere.
func untypable(line []string, printed string) error {
	for _, m := range inText.FindAllStringSubmatch(printed, -1) {
		if isAbout(m[2]) {
			continue
		}
		words, err := typable(m[1], m[2])
		if err != nil {
			return err
		}
		takes := func(flag string) bool {
			p, _ := theProgram().Parser(io.Discard, io.Discard, func(int) {})
			_, err := p.Parse(append(slices.Clone(words), strings.Fields(flag)...))
			return err == nil
		}
		for _, f := range placed(line) {
			if slices.Contains(words, "MODEL") || slices.Contains(placed(words), f) || !takes(f) {
				continue
			}
			return fmt.Errorf("projector %s: lacks %s, which was given", strings.Join(words, " "), f)
		}
	}
	return nil
}

// mainTyped is main, for scripts. It ends with exit code 99 if a command that it prints cannot be typed as it stands.
func mainTyped() {
	args := os.Args[1:]
	if cli.InLambda(args) || len(args) == 0 || slices.Contains(args, "--help") || slices.Contains([]string{"deploy"}, args[0]) {
		Main(args)
	}
	var said bytes.Buffer
	w := cli.Messages(&said)
	code := run(cli.Stopped(context.Background()), args, os.Stdin, io.MultiWriter(os.Stdout, w), io.MultiWriter(os.Stderr, w))
	if err := untypable(args, said.String()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 99
	}
	os.Exit(code)
}

// mainWeir is what package main of weir does with projector's commands and with ingest's.
func mainWeir() {
	model.Called = "weir"
	if len(os.Args) > 1 && os.Args[1] == "ingest" {
		ingestcli.Main(os.Args[2:])
	}
	Main(os.Args[1:])
}

// TestCalledWeir: texts name each of projector's commands as weir's.
func TestCalledWeir(t *testing.T) {
	p, err := theProgram().Parser(io.Discard, io.Discard, func(int) {})
	failtest.On(t, err)
	model.Called = "weir"
	t.Cleanup(func() { model.Called = "projector" })
	for _, command := range p.Model.Children {
		if text := "projector " + command.Name + " gallery"; !command.Hidden && cli.Typed(text) != "weir "+command.Name+" gallery" {
			t.Errorf("%s: %s", text, cli.Typed(text))
		}
	}
}

// untyped are files with other commands: the command that made a template, with the names of its models.
var untyped = []string{"../../internal/deploy/cloudformation.go"}

// TestCommandsOfMessages: each command in a string of the product's code can be typed as it stands, with MODEL for a model, so none
// is put together but by Command, and each verb that Command is called with is one. Of help texts, examples are commands.
func TestCommandsOfMessages(t *testing.T) {
	soaktest.Calm(t)
	met := 0
	for _, root := range []string{"../../cmd", "../../internal"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || strings.Contains(path, "internal/sim/") || strings.HasSuffix(filepath.Dir(path), "test") || slices.Contains(untyped, path) {
				return err
			}
			files := token.NewFileSet()
			f, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			check := func(at ast.Node, text string) {
				for _, m := range inText.FindAllStringSubmatch(text, -1) {
					met++
					if _, err := typable(m[1], m[2]); err != nil {
						t.Errorf("%v: %v", files.Position(at.Pos()), err)
					}
				}
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.Field:
					return n.Tag == nil
				case *ast.FuncDecl:
					if n.Name.Name == "Help" { // of which the lines of examples are commands
						ast.Inspect(n, func(n ast.Node) bool {
							if text, is := n.(*ast.BasicLit); is {
								for line := range strings.Lines(literal(text)) {
									if strings.HasPrefix(line, "  ") {
										check(n, line)
									}
								}
							}
							return true
						})
						return false
					}
				case *ast.BinaryExpr:
					if n.Op == token.ADD {
						check(n, literal(n))
						return false
					}
				case *ast.BasicLit:
					check(n, literal(n))
				case *ast.CallExpr:
					if f, is := n.Fun.(*ast.SelectorExpr); is && f.Sel.Name == "Command" && len(n.Args) > 0 {
						words := "projector"
						for i, a := range n.Args {
							word := literal(a)
							if word == "X" {
								word = "1" // is right as a number and as a text
							}
							if words += " " + word; i == 0 {
								words += " MODEL"
							}
						}
						check(n, strings.ReplaceAll(words, "deploy tables MODEL", "deploy tables MODEL --aws"))
						return false
					}
				}
				return true
			})
			return nil
		})
		failtest.On(t, err)
	}
	if met < 60 {
		t.Errorf("only %d commands were found", met)
	}
}

// literal is the text of an expression of strings; what is no literal is a word X.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return literal(e.X) + literal(e.Y)
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	}
	return "X"
}

// TestCommandHasItsFlags: a command that is printed is about the rows and the model that the user has named, and a shell reads it so.
func TestCommandHasItsFlags(t *testing.T) {
	at := system.Place{AWS: true, Data: "my data", OpenSearch: "https://s", Stage: stage.Stage{Name: "x", Tables: []stage.Pair{{Logical: "A", Real: "aaa"}, {Logical: "B", Real: "bbb"}}}}
	m := &model.Model{Name: "shop", Arg: "it's/shop.yaml", Flags: at.Flags()}
	for verb, want := range map[string]string{
		"dead retry":    `projector dead retry 'it'\''s/shop.yaml' --aws --data 'my data' --opensearch https://s --stage x --tables A=aaa,B=bbb ID`,
		"deploy tables": `projector deploy tables 'it'\''s/shop.yaml' --aws --stage x --tables A=aaa,B=bbb ID`,
		"why":           `projector why 'it'\''s/shop.yaml' --stage x --tables A=aaa,B=bbb ID`,
	} {
		if got := m.Command(verb, "ID"); got != want {
			t.Errorf("%s\nnot %s", got, want)
		}
	}
	if got := m.Typed("run projector verify MODEL, or not"); !strings.HasPrefix(got, `run projector verify 'it'`) || !strings.HasSuffix(got, "B=bbb, or not") {
		t.Error(got)
	}
	at = system.Place{Data: "./data", OpenSearch: "https://me:secret@s"}
	if got := (&model.Model{Name: "shop", Flags: at.Flags()}).Command("build"); got != "projector build shop --opensearch URL" {
		t.Error(got)
	}
}

// TestUntypable: the check of scripts finds what it is for.
func TestUntypable(t *testing.T) {
	soaktest.Calm(t)
	line := []string{"run", "gallery", "--aws", "--stage", "x", "--data", "d"}
	for printed, good := range map[string]bool{
		"run projector build gallery --aws --data d --stage x --again, or not": true,
		"projector status gallery --aws --data d --stage x shows it":           true,
		"projector deploy tables gallery --aws --stage x makes it":             true,
		"projector build gallery --aws --stage x --again":                      false, // without --data
		"projector build gallery --aws --data e --stage x":                     false,
		"projector verify, which says":                                         false,
		"projector dead list shows it":                                         false,
		"projector builds gallery --aws --data d --stage x":                    false,
		"projector dead show gallery":                                          false,
		"projector status gallery --once":                                      false,
	} {
		if err := untypable(line, printed); (err == nil) != good {
			t.Errorf("%s: %v", printed, err)
		}
	}
}
