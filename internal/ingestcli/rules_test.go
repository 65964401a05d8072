package ingestcli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"weir/internal/failtest"
)

// rulesList says of each rule and error of the write side where it is shown.
const rulesList = "testdata/rules.txt"

var (
	shownIn = regexp.MustCompile(`^\t(\S+):(\d+)\t(.*)$`)
	kindOf  = regexp.MustCompile(`(?:ProblemOf|newRefusal)\(http\.Status\w+, "([a-z-]+)"|\{http\.Status\w+, "([a-z-]+)"\}`)
)

// TestRulesList: each line that the list names is there, or not far, and the page of HTTP names each
// kind of problem that a server answers with. Run with -update when lines have moved.
func TestRulesList(t *testing.T) {
	text, err := os.ReadFile(rulesList)
	failtest.On(t, err)
	list, rules := strings.Split(string(text), "\n"), 0
	for i, row := range list {
		m := shownIn.FindStringSubmatch(row)
		if m == nil {
			continue
		}
		rules++
		n := lineOf(t, m[1], m[2], m[3])
		switch {
		case n == 0:
			t.Errorf("%s: %s has no line %q", list[i-1], m[1], m[3])
		case far(n, m[2]) && !*update:
			t.Errorf("%s: it stands in line %d of %s, not %s; run it with -update", list[i-1], n, m[1], m[2])
		default:
			list[i] = fmt.Sprintf("\t%s:%d\t%s", m[1], n, m[3])
		}
	}
	if rules < 80 {
		t.Errorf("%d rules", rules)
	}
	page, err := os.ReadFile("../../docs/guide/http.md")
	failtest.On(t, err)
	for _, kind := range kinds(t) {
		if !strings.Contains(string(page), "`"+kind+"`") {
			t.Errorf("the page does not say what the problem %s means", kind)
		}
	}
	if *update {
		failtest.On(t, os.WriteFile(rulesList, []byte(strings.Join(list, "\n")), 0o644))
	}
}

// far says that a reader who goes to the line named does not see the other one.
func far(n int, named string) bool {
	at, err := strconv.Atoi(named)
	return err != nil || n < at-30 || n > at+30
}

// lineOf is the line of a file that has a text: the one named if it does, else the
// first, 0 for none.
func lineOf(t *testing.T, path, named, text string) (n int) {
	b, err := os.ReadFile("../../" + path)
	failtest.On(t, err)
	for i, line := range strings.Split(string(b), "\n") {
		if !strings.Contains(line, text) {
			continue
		}
		if fmt.Sprint(i+1) == named {
			return i + 1
		}
		if n == 0 {
			n = i + 1
		}
	}
	return n
}

// kinds are the kinds of problems in the code.
func kinds(t *testing.T) (out []string) {
	for _, dir := range []string{"writeapi", "web"} {
		files, err := filepath.Glob("../../internal/" + dir + "/*.go")
		failtest.On(t, err)
		for _, f := range files {
			b, err := os.ReadFile(f)
			failtest.On(t, err)
			for _, m := range kindOf.FindAllStringSubmatch(string(b), -1) {
				out = append(out, m[1]+m[2])
			}
		}
	}
	if len(out) < 30 {
		t.Errorf("%d kinds of problems: %v", len(out), out)
	}
	return out
}
