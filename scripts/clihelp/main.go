// Command clihelp writes docs/guide/cli.md, which holds the --help output of each program and
// of each of its commands.
//
//	go run ./scripts/clihelp          writes the page
//	go run ./scripts/clihelp -check   reports whether the page is up to date
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const page = "docs/guide/cli.md"

const head = `# Command line

This page is generated from weir's own ` + "`--help`" + ` by ` + "`make cli`" + `. ` + "`MODEL`" + ` is the name of a built-in model or the path
of a model file. Results are printed on stdout, everything else on stderr.
What a terminal would misread, such as a control character or one that turns the order of a text, is printed as JSON
escapes it (` + "`\\u202e`" + `). Commands accept the address of a row as it is printed.

| exit code | meaning |
|---|---|
| 0 | good |
| 1 | a check failed, or something was refused or became a dead letter. ` + "`replay`" + `: a record could not be used, records are missing, or the model has dead letters. ` + "`verify`" + `: also while a row has a value that nothing can be derived or computed from |
| 2 | usage or configuration |
| 3 | a service or the disk is down, or the output could not be written |
| 4 | incomplete: run the same command again to continue |
| 130 | interrupted |

**Environment.** The variable of a flag is its name in capitals behind ` + "`WEIR_`" + `: ` + "`WEIR_DATA`" + ` is ` + "`--data`" + `,
` + "`WEIR_WRITE_BUDGET`" + ` is ` + "`--write-budget`" + `, ` + "`WEIR_AWS=true`" + ` is ` + "`--aws`" + `. The help
of each command names the variable behind each flag. Where a flag means something else for another command, the variable has the command's
name too: ` + "`WEIR_BUILD_WRITE_BUDGET`, `WEIR_DASHBOARD_FORMAT`" + `. Keys are no flag, since others can read command
lines: ` + "`WEIR_KEYS`" + ` has them, or the file that ` + "`--keys-file`" + ` names. Flags of a
single act have no variable: ` + "`--abort`, `--again`, `--all`, `--assume-complete`, `--dry-run`, `--end`, `--forget`, `--prune`, `--reset`, `--take-over`, `--update`" + `.

No output has colours, so ` + "`NO_COLOR`" + ` changes nothing. Progress is shown on a terminal only.

**Checks in CI.** ` + "`lint`" + ` prints ` + "`FILE:LINE:COLUMN: MESSAGE`" + `, and ` + "`FILE:LINE:COLUMN: warning: MESSAGE`" + ` for a warning, as compilers do. GitHub
Actions shows them in the code with this problem matcher:

` + "```json" + `
{"problemMatcher": [
  {"owner": "weir-error", "severity": "error", "pattern": [{"regexp": "^(.+?):(\\d+):(?:(\\d+):)? (?!warning:)(.+)$", "file": 1, "line": 2, "column": 3, "message": 4}]},
  {"owner": "weir-warning", "severity": "warning", "pattern": [{"regexp": "^(.+?):(\\d+):(?:(\\d+):)? warning: (.+)$", "file": 1, "line": 2, "column": 3, "message": 4}]}
]}
` + "```" + `
`

// programs are the commands of weir that have commands of their own, or much to say; weir itself is the first.
var programs = []string{"weir", "weir ingest", "weir simulator"}

func main() {
	check := flag.Bool("check", false, "change nothing; exit with 1 when "+page+" is not current")
	flag.Parse()
	if err := writePage(*check); err != nil {
		fmt.Fprintln(os.Stderr, "clihelp:", err)
		os.Exit(1)
	}
}

func writePage(check bool) error {
	want, err := makePage()
	if err != nil {
		return err
	}
	if !check {
		return os.WriteFile(page, want, 0o666)
	}
	have, err := os.ReadFile(page)
	if err == nil && !bytes.Equal(have, want) {
		err = fmt.Errorf("%s is not what the programs print: run make cli, and read the diff", page)
	}
	return err
}

// makePage builds the programs and returns the page.
func makePage() ([]byte, error) {
	bin, err := os.MkdirTemp("", "clihelp")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(bin)
	if out, err := exec.Command("go", "build", "-o", bin+"/", "./cmd/weir").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w\n%s", err, out)
	}
	var b bytes.Buffer
	b.WriteString(head)
	for _, name := range programs {
		words := strings.Fields(name)[1:]
		program := filepath.Join(bin, "weir")
		text, err := readHelp(program, words...)
		if err != nil {
			return nil, err
		}
		writeSection(&b, "## "+name, text)
		for _, command := range listCommands(text) {
			if slices.Contains(programs, name+" "+command) {
				continue
			}
			text, err := readHelp(program, slices.Concat(words, strings.Fields(command))...)
			if err != nil {
				return nil, err
			}
			writeSection(&b, "### "+name+" "+command, text)
		}
	}
	return b.Bytes(), nil
}

func writeSection(b *bytes.Buffer, title, text string) {
	fmt.Fprintf(b, "\n%s\n\n```text\n%s\n```\n", title, strings.TrimSpace(text))
}

// readHelp returns the help that a command prints, 80 columns wide.
func readHelp(program string, command ...string) (string, error) {
	cmd := exec.Command(program, append(command, "--help")...)
	cmd.Env = append(os.Environ(), "COLUMNS=80")
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s --help: %w\n%s", filepath.Base(program), strings.Join(command, " "), err, out)
	}
	return string(out), nil
}

var listed = regexp.MustCompile(`(?m)^  ([a-z]+(?: [a-z]+)?)  +\S`)

// listCommands returns the commands that the help of a program lists.
func listCommands(help string) (names []string) {
	_, list, _ := strings.Cut(help, "\nCommands:\n")
	for _, m := range listed.FindAllStringSubmatch(list, -1) {
		names = append(names, m[1])
	}
	return names
}
