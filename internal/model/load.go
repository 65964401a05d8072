package model

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"weir/models"
)

// MaxFileBytes is the maximum size of a model file.
const MaxFileBytes = 1 << 20

// given are the models that a program of a user has in it, by name.
var given = map[string]*Model{}

// Give lets Load find a model by its name. Call it before the first Load.
func Give(m *Model) { given[m.Name] = m }

// Builtin returns the names of the models that are compiled into the program, sorted.
func Builtin() []string {
	files, _ := fs.Glob(models.Files, "*.yaml")
	for i, f := range files {
		files[i] = strings.TrimSuffix(f, ".yaml")
	}
	return files
}

// Schema returns the JSON Schema (draft 2020-12) of model files, for editors.
func Schema() []byte {
	b, err := models.Files.ReadFile("schema.json")
	if err != nil {
		panic(err) // it is compiled in
	}
	return b
}

// Load reads, checks and compiles a model file, given by its path or by the name of a
// built-in model. A file with exactly that name takes precedence over the built-in model.
// The error is a *Problems if the file was read and is wrong; it wraps fs.ErrNotExist if
// there is neither such a file nor such a model.
// The model is not changed afterwards: it may be used by many goroutines, and shared by any number of systems.
func Load(nameOrPath string) (*Model, error) {
	m, err := openModel(nameOrPath)
	if m != nil {
		m.Arg = nameOrPath
	}
	return m, err
}

// Named returns a model of which nothing but the name is known, because its file is gone: it has no
// tables and derives nothing. ok is false for a text that cannot be the name of a model.
func Named(name string) (m *Model, ok bool) {
	return &Model{Name: name, Arg: name}, kebabName.MatchString(name)
}

// openModel opens a model by path, or by the name of a built-in one. A file in the current directory
// wins over a built-in model of that name.
func openModel(nameOrPath string) (*Model, error) {
	if s, err := os.Stat(nameOrPath); err == nil && !s.IsDir() {
		f, err := os.Open(nameOrPath)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return readModel(nameOrPath, f)
	}
	if m := given[nameOrPath]; m != nil {
		return Parse(m.File, m.text)
	}
	if f, err := models.Files.Open(nameOrPath + ".yaml"); err == nil {
		defer f.Close()
		return readModel(filepath.Join("models", nameOrPath+".yaml"), f)
	}
	if strings.ContainsRune(nameOrPath, filepath.Separator) || strings.HasSuffix(nameOrPath, ".yaml") || strings.HasSuffix(nameOrPath, ".yml") {
		if s, err := os.Stat(nameOrPath); err == nil && s.IsDir() {
			return nil, missing(fmt.Sprintf("%s is a directory, and no model file", nameOrPath))
		}
		return nil, missing(fmt.Sprintf("there is no model file %s", nameOrPath))
	}
	return nil, missing(fmt.Sprintf("no model %q, neither built in nor as a file here (%s)", nameOrPath, hintFor(nameOrPath, slices.Concat(slices.Sorted(maps.Keys(given)), Builtin()))))
}

// missing is the error for a model that does not exist. It matches fs.ErrNotExist.
type missing string

func (m missing) Error() string        { return string(m) }
func (m missing) Is(target error) bool { return target == fs.ErrNotExist }

// readModel reads at most MaxFileBytes and one byte: a longer file is refused by Parse.
func readModel(file string, from io.Reader) (*Model, error) {
	text, err := io.ReadAll(io.LimitReader(from, MaxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("model file %s: %w", file, err)
	}
	return Parse(file, text)
}

// Parse checks and compiles the text of a model file; file is its name in
// messages. The error is always a *Problems. It never panics.
func Parse(file string, text []byte) (*Model, error) {
	r := &reader{file: file}
	var m *Model
	if root := r.parseDocument(text); root.isGiven() {
		m = compileModel(r, root)
		m.text, m.Warnings = bytes.Clone(text), sortProblems(r.warnings)
	}
	if len(r.problems) > 0 {
		return nil, &Problems{sortProblems(r.problems)}
	}
	return m, nil
}

// parseDocument parses the file, which must hold exactly one document. It reports YAML features
// that no model file needs.
func (r *reader) parseDocument(text []byte) node {
	if len(text) > MaxFileBytes {
		r.addFlaw(pos{1, 1}, "", "the file has more than %d bytes", MaxFileBytes)
		return node{}
	}
	if at := notUTF8(text); at != (pos{}) {
		r.addFlaw(at, "save the file as UTF-8", "this is not UTF-8 text")
		return node{}
	}
	d := yaml.NewDecoder(bytes.NewReader(text))
	var doc, more yaml.Node
	if err := d.Decode(&doc); errors.Is(err, io.EOF) {
		r.addFlaw(pos{1, 1}, "it begins with model: NAME", "the file is empty")
		return node{}
	} else if err != nil {
		r.reportSyntax(text, err)
		return node{}
	}
	if err := d.Decode(&more); err == nil {
		r.addFlaw(pos{more.Line, more.Column}, "one model a file", "a second document begins here")
	} else if !errors.Is(err, io.EOF) {
		r.reportSyntax(text, err)
	}
	root := node{r, doc.Content[0]}
	if r.checkPlain(root.y); len(r.problems) > 0 {
		return node{}
	}
	if !root.isMap() {
		root.reportWrong("a model file", "a map that begins with model: NAME")
		return node{}
	}
	return root
}

var (
	// The messages of the YAML library, from which places are read. A message that matches none of them is
	// shown as it is.
	yamlError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(?s:(.*))$`)
	// The library counts lines from 0 in the complaints of its parser, from 1 in
	// those of its scanner.
	parserError = regexp.MustCompile(`^(did not find expected (<|node content|key|'-' indicator|',' or)|found (undefined tag|duplicate %|incompatible))`)
	bareMark    = regexp.MustCompile(`[:,{\[]\s*\w+\?\s*[,}\]]`)
)

// reportSyntax reports invalid YAML. It gives a hint for the mistake that this language invites:
// inside braces, an unquoted question mark ends a text.
func (r *reader) reportSyntax(text []byte, err error) {
	line, message := 1, err.Error()
	if m := yamlError.FindStringSubmatch(message); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
			if parserError.MatchString(m[2]) {
				line++
			}
		}
		message = m[2]
	}
	for i, l := range bytes.Split(text, []byte("\n")) {
		if blank := l[:len(l)-len(bytes.TrimLeft(l, " \t"))]; i+1 == line && bytes.ContainsRune(blank, '\t') {
			r.addFlaw(pos{i + 1, bytes.IndexByte(blank, '\t') + 1}, "indent with blanks", "not YAML: a line cannot begin with a tab")
			return
		}
		if m := bareMark.FindIndex(l); m != nil && i+1 >= line {
			at := pos{i + 1, utf8.RuneCount(l[:m[0]+bytes.IndexByte(l[m[0]:], '?')]) + 1}
			r.addFlaw(at, `put it in quotes, {Category: "category?"}`, "not YAML: inside braces a text with ? does not stand alone")
			return
		}
	}
	hint := ""
	if strings.Contains(message, "did not find expected ','") {
		hint = "a comma is missing, or what was opened is not closed"
	}
	r.addFlaw(pos{line, 0}, hint, "not YAML: %s", message)
}

// checkPlain reports anchors, aliases and tags, which a model must not use. So every value is
// written where it applies, and a small file cannot expand into a huge one.
func (r *reader) checkPlain(root *yaml.Node) {
	for todo := []*yaml.Node{root}; len(todo) > 0; {
		n := todo[len(todo)-1]
		todo = append(todo[:len(todo)-1], n.Content...)
		at := pos{n.Line, n.Column}
		switch {
		case n.Kind == yaml.AliasNode:
			r.addFlaw(at, "write it out", "an alias (*%s) is not part of the language", n.Value)
		case n.Anchor != "":
			r.addFlaw(at, "leave it out", "an anchor (&%s) is not part of the language", n.Anchor)
		case n.Style&yaml.TaggedStyle != 0:
			r.addFlaw(at, "leave it out", "a tag (%s) is not part of the language", n.Tag)
		}
	}
	slices.SortStableFunc(r.problems, func(a, b Problem) int { return a.Line - b.Line })
}

// notUTF8 returns the place of the first byte that is not UTF-8, or the zero pos.
// Columns count characters, as editors show them.
func notUTF8(text []byte) pos {
	at := pos{1, 1}
	for len(text) > 0 {
		c, n := utf8.DecodeRune(text)
		switch {
		case c == utf8.RuneError && n <= 1:
			return at
		case c == '\n':
			at = pos{at.line + 1, 1}
		default:
			at.column++
		}
		text = text[n:]
	}
	return pos{}
}
