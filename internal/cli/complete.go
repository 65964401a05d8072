package cli

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"weir/internal/model"
	"weir/models"
)

// Extras are the commands and flags that both programs have beside their work: a program's
// commands embed it.
type Extras struct {
	Version    VersionFlag       `env:"-" help:"Print the version and the formats of stored data."`
	Config     string            `placeholder:"FILE" help:"A file that says what flags say, as YAML or JSON; without it ${config_file}, if that is here."`
	Completion completionCommand `cmd:"" help:"Print what completes command lines in bash, zsh or fish."`
	Man        manCommand        `cmd:"" help:"Print the manual page, for man."`
	Complete   completeCommand   `cmd:"" hidden:"" help:"Print what a command line can go on with."`
}

// completionCommand prints the function by which a shell completes.
type completionCommand struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"The shell: bash, zsh or fish."`
}

func (completionCommand) Help() string {
	return `Commands, flags, their values, built-in models and the queries of a model are completed.

  source <(projector completion bash)      # in ~/.bashrc
  source <(projector completion zsh)       # in ~/.zshrc, after compinit
  projector completion fish | source       # in ~/.config/fish/config.fish

ingest has the same command.`
}

// Run prints the script of a shell for this program.
func (c *completionCommand) Run(k *kong.Kong) error {
	_, err := fmt.Fprint(k.Stdout, strings.ReplaceAll(shells[c.Shell], "PROGRAM", k.Model.Name))
	return err
}

// shells have, for each shell, a function that asks the program what a command line can go on
// with. The program prints a candidate a line, with a tab before what it is for, and :files where
// names of files are possible.
var shells = map[string]string{
	"bash": `_PROGRAM() {
	local line cur=${COMP_WORDS[COMP_CWORD]} files=
	COMPREPLY=()
	[ "$cur" != "=" ] || cur=
	while IFS= read -r line; do
		if [ "$line" = :files ]; then files=1; else COMPREPLY+=("${line%%$'\t'*}"); fi
	done < <("$1" complete -- "${COMP_WORDS[@]:0:COMP_CWORD+1}" 2>/dev/null)
	if [ -n "$files" ]; then
		compopt -o filenames 2>/dev/null
		while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$cur")
	fi
}
complete -F _PROGRAM PROGRAM
`,
	"zsh": `_PROGRAM() {
	local line
	local -a found
	for line in "${(@f)$("${words[1]}" complete -- "${(@)words[1,CURRENT]}" 2>/dev/null)}"; do
		case $line in
		:files) _files ;;
		?*) found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}") ;;
		esac
	done
	(( ${#found} )) && _describe PROGRAM found
}
compdef _PROGRAM PROGRAM
`,
	"fish": `function __PROGRAM_candidates
	set -l words (commandline -opc) (commandline -ct)
	for line in ($words[1] complete -- $words 2>/dev/null)
		if test "$line" = :files
			__fish_complete_path (commandline -ct)
		else
			echo $line
		end
	end
end
complete -c PROGRAM -f -a '(__PROGRAM_candidates)'
`,
}

// completeCommand answers the shell's function. It opens no store, so it answers at once and changes nothing.
type completeCommand struct {
	Words []string `arg:"" passthrough:"" help:"The command line until the cursor; the last word is not finished."`
}

// Run prints a candidate a line. It opens no store, so completing is quick and changes nothing.
func (c *completeCommand) Run(k *kong.Kong) error {
	for _, candidate := range complete(k.Model.Node, c.Words) {
		if _, err := fmt.Fprintln(k.Stdout, candidate); err != nil {
			return err
		}
	}
	return nil
}

// line is a command line as far as it has been read.
type line struct {
	node    *kong.Node
	args    []string
	pending *kong.Flag // whose value comes next
}

// complete returns what can stand for the last word, each with a tab before what it is for.
// It reads no file and no store. A last ":files" tells the shell to complete names of files too.
func complete(root *kong.Node, words []string) (out []string) {
	if words = slices.DeleteFunc(slices.Clone(words), func(w string) bool { return w == "--" }); len(words) < 2 {
		return nil
	}
	l, last := line{node: root}, words[len(words)-1]
	for _, w := range words[1 : len(words)-1] {
		l.read(w)
	}
	if last == "=" { // bash makes it a word
		last = ""
	}
	add := func(candidate, about string) {
		if strings.HasPrefix(candidate, last) {
			about, _, _ = strings.Cut(about, "\n")
			out = append(out, candidate+"\t"+about)
		}
	}
	name, _, valued := strings.Cut(last, "=")
	files := false
	switch {
	case l.pending != nil:
		files = l.values(l.pending.Value, "", add)
	case valued && strings.HasPrefix(name, "--"):
		if f := l.flag(name); f != nil {
			files = l.values(f.Value, name+"=", add)
		}
	case strings.HasPrefix(last, "-"):
		for _, group := range l.node.AllFlags(true) {
			for _, f := range group {
				add("--"+f.Name, f.Help)
			}
		}
	case len(l.node.Children) > 0:
		for _, c := range l.node.Children {
			if !c.Hidden {
				add(c.Name, c.Help)
			}
		}
	case len(l.node.Positional) > 0:
		files = l.values(l.node.Positional[min(len(l.args), len(l.node.Positional)-1)], "", add)
	}
	if files {
		out = append(out, ":files")
	}
	return out
}

// read takes a finished word.
func (l *line) read(w string) {
	switch name, _, valued := strings.Cut(w, "="); {
	case w == "=":
	case l.pending != nil:
		l.pending = nil
	case strings.HasPrefix(w, "-"):
		if f := l.flag(name); f != nil && !valued && !f.IsBool() {
			l.pending = f
		}
	default:
		for _, c := range l.node.Children {
			if c.Name == w {
				l.node = c
				return
			}
		}
		l.args = append(l.args, w)
	}
}

// flag is the flag of a word, nil if the command has none of that name.
func (l *line) flag(name string) *kong.Flag {
	for _, group := range l.node.AllFlags(true) {
		for _, f := range group {
			if name == "--"+f.Name || f.Short != 0 && name == "-"+string(f.Short) {
				return f
			}
		}
	}
	return nil
}

// values adds what a flag or an argument can be, and reports whether it may be a file.
func (l *line) values(v *kong.Value, prefix string, add func(candidate, about string)) (files bool) {
	switch {
	case v.Enum != "":
		for _, e := range v.EnumSlice() {
			add(prefix+e, "")
		}
		return false
	case v.Name == "model":
		for _, m := range builtIn() {
			add(prefix+m, "built-in model")
		}
	case l.node.Name == "query" && v.Name == "name" && len(l.args) > 0:
		if m, err := model.Load(l.args[0]); err == nil {
			for _, q := range m.Queries {
				add(q.Name, "query")
			}
		}
		return false
	}
	return true
}

// builtIn are the names of the built-in models, read without compiling one.
func builtIn() (names []string) {
	files, _ := fs.Glob(models.Files, "*.yaml") // its error is of the pattern
	for _, f := range files {
		names = append(names, strings.TrimSuffix(f, ".yaml"))
	}
	return names
}
