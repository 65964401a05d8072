// Package mistakes reads mistakes that are to be planted: text in a file, and what it
// would be by mistake.
package mistakes

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Mistake is one of them.
type Mistake struct {
	Name     string
	File     string   // from the module's root
	Models   []string // on which it can be seen
	Runs     string   // of which kind: runs, builds or bulk
	Test     string   // which sees it instead of the simulator: its package and its name
	Sentence string
	edits    [][2]string // text as it is, and by mistake
}

// Read reads a file of mistakes.
func Read(file string) (out []Mistake, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	for _, part := range strings.Split("\n"+string(b), "\n@@ ")[1:] {
		m, err := parseMistake(part)
		if err == nil && seen[m.Name] {
			err = fmt.Errorf("it is there twice")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %.40q: %w", file, part, err)
		}
		seen[m.Name] = true
		out = append(out, m)
	}
	return out, nil
}

func parseMistake(part string) (m Mistake, err error) {
	head, rest, _ := strings.Cut(part, "\n")
	words := strings.Fields(head)
	sentence, body, ok := strings.Cut(rest, "<<<<\n")
	body, _, closed := strings.Cut(body, ">>>>")
	kind := len(words) > 2 && ((words[2] == "builds" || words[2] == "bulk") && len(words) == 3 || words[2] == "test" && len(words) != 5)
	if len(words) < 3 || kind || !ok || !closed || strings.TrimSpace(sentence) == "" {
		return m, fmt.Errorf("it is not a head, a sentence, <<<<, text, ====, text, >>>>")
	}
	m = Mistake{
		Name: words[0], File: words[1], Models: words[2:], Runs: "runs",
		Sentence: strings.Join(strings.Fields(sentence), " "),
	}
	switch m.Models[0] {
	case "builds", "bulk":
		m.Runs, m.Models = m.Models[0], m.Models[1:]
	case "test":
		m.Test, m.Models = strings.Join(m.Models[1:], " "), nil
	}
	for _, edit := range strings.Split(body, "++++\n") {
		was, is, ok := strings.Cut("\n"+edit, "\n====\n")
		if !ok || strings.TrimSpace(was) == "" {
			return m, fmt.Errorf("a text has no ==== behind it")
		}
		m.edits = append(m.edits, [2]string{was[1:] + "\n", is})
	}
	return m, nil
}

// Plant is the file with the mistake in it. Each text must stand in it once.
func (m *Mistake) Plant(root string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(root, m.File))
	if err != nil {
		return nil, err
	}
	text := string(b)
	for _, e := range m.edits {
		if n := strings.Count(text, e[0]); n != 1 {
			return nil, fmt.Errorf("in %s this stands %d times, not once:\n%s", m.File, n, e[0])
		}
		text = strings.Replace(text, e[0], e[1], 1)
	}
	return []byte(text), nil
}
