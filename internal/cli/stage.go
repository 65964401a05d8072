package cli

import (
	"fmt"
	"os"
	"strings"

	"weir/internal/seq"
	"weir/internal/stage"
)

// StageFlags are the flags that say which deployment a command is for. A function has
// them in its environment.
type StageFlags struct {
	Stage  stageName  `default:"default" placeholder:"NAME" help:"The deployment, such as prod: a stage has an own table, search indexes and a directory of its own."`
	Tables []tableMap `sep:"none" placeholder:"MAP" help:"The names that tables of the model have in the store: NAME=REAL,NAME=REAL or @FILE, which has lines of NAME=REAL or a JSON object."`
}

// Deployment is the stage that the flags say.
func (f *StageFlags) Deployment() stage.Stage {
	s := stage.Stage{Name: string(f.Stage)}
	s.Tables = append(s.Tables, seq.Flat(f.Tables, func(m tableMap) []stage.Pair { return m })...)
	return s
}

// OfStage names the stage of a command that serves, behind the place of its rows;
// "" for the default stage with the model's names.
func OfStage(n *stage.Names) string {
	out := ""
	if s := n.Stage(); !s.IsDefault() {
		out = ", stage " + s.Name
	}
	if mapped := n.Mapped(); len(mapped) > 0 {
		out += ", tables " + strings.Join(mapped, ", ")
	}
	return out
}

// Flags of the environment, for a function.
const (
	envStage  = "WEIR_STAGE"
	envTables = "WEIR_TABLES"
)

// StageOfEnvironment reads the flags' variables.
func StageOfEnvironment() (f StageFlags, err error) {
	if text, is := os.LookupEnv(envStage); is {
		if err := f.Stage.UnmarshalText([]byte(text)); err != nil {
			return f, Usage("%s: %v", envStage, err)
		}
	}
	if text, is := os.LookupEnv(envTables); is {
		var m tableMap
		if err := m.UnmarshalText([]byte(text)); err != nil {
			return f, Usage("%s: %v", envTables, err)
		}
		f.Tables = append(f.Tables, m)
	}
	return f, nil
}

// stageName is a stage as a flag, checked when it is read.
type stageName string

// UnmarshalText refuses a text that is no name of a stage, so a wrong one is a usage error before anything
// is opened.
func (n *stageName) UnmarshalText(text []byte) error {
	*n = stageName(text)
	return stage.CheckName(string(text))
}

// tableMap is a map of tables as a flag: the pairs themselves, or those of a file.
type tableMap []stage.Pair

// maxMap is the maximum of bytes in a file with a map.
const maxMap = 1 << 20

// UnmarshalText reads a map, or the file that @FILE names: a regular one of at most maxMap bytes.
func (m *tableMap) UnmarshalText(text []byte) (err error) {
	path, isFile := strings.CutPrefix(string(text), "@")
	if !isFile {
		*m, err = stage.ParseTables(string(text))
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a file", path)
	}
	if info.Size() > maxMap {
		return fmt.Errorf("%s: a map of tables has at most %d bytes, not %d", path, maxMap, info.Size())
	}
	content, err := os.ReadFile(path)
	if err == nil {
		*m, err = stage.ParseTables(string(content))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}
