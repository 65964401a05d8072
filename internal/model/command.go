package model

import (
	"cmp"
	"regexp"
	"strings"
	"weir/internal/seq"
)

// Flag is a flag of a command line, with two hyphens before its name. One without a value has only a name.
type Flag struct{ Name, Value string }

// hasFlag reports whether a command has a flag that says where rows are.
func hasFlag(verb, flag string) bool {
	switch {
	case flag == "server":
		return verb == "query" || verb == "status" || strings.HasPrefix(verb, "dead ")
	case verb == "deploy tables":
		return flag == "aws" || flag == "stage" || flag == "tables"
	case verb == "deploy template":
		return false
	case verb == "why":
		return flag == "stage" || flag == "tables"
	}
	return true
}

// Called is the program whose commands messages name. A main may set it before it does anything else.
var Called = "projector"

// Command returns a command about the model, as its user can type it in a shell: `projector dead retry gallery --aws ID`. The
// model is as the command line names it, and behind it stand those of its Flags that the verb has.
func (m *Model) Command(verb string, args ...string) string {
	words := []string{Called + " " + verb, quoteForShell(cmp.Or(m.Arg, m.Name))}
	for _, f := range m.Flags {
		if !hasFlag(verb, f.Name) {
			continue
		}
		if words = append(words, "--"+f.Name); f.Value != "" {
			words = append(words, quoteForShell(f.Value))
		}
	}
	words = append(words, seq.Map(args, quoteForShell)...)
	return strings.Join(words, " ")
}

// aCommand is a command in a text of a package that knows no model.
var aCommand = regexp.MustCompile(`\bprojector ((?:deploy |dead )?[a-z]+) (MODEL|FILE)\b( --)?`)

// Typed returns a text with its commands as Command writes them: where it says `projector build MODEL`, MODEL becomes the
// model and its flags. FILE stands for another model file, and gets the flags.
func (m *Model) Typed(text string) string {
	return aCommand.ReplaceAllStringFunc(text, func(c string) string {
		of, words := *m, aCommand.FindStringSubmatch(c)
		if words[2] == "FILE" {
			if of.Arg = words[2]; words[3] != "" { // it has them
				return c
			}
		}
		return of.Command(words[1]) + words[3]
	})
}

var plainWord = regexp.MustCompile(`^[\pL\pN_@%+=:,./…-]+$`)

// quoteForShell returns a word as a shell reads it.
func quoteForShell(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
