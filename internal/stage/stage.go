// Package stage gives the tables of a deployment their names.
//
// A stage is one deployment of models in an account: prod, dev. All code above the
// drivers names tables as the model does, and the own table weir (owntable.TableName): these
// are logical names. In the store the tables have real names. Names translates between
// the two, and this package is the only place that does:
//
//   - Wrap makes a store that takes logical names of one that has real names;
//   - Names.Entries gives logical names to records that AWS or files bring.
//
// The own table of the stage default is weir, that of the stage prod weir-prod. So two
// stages never share ledgers, leases or checkpoints. The real names of the model's tables
// are the model's, unless Stage.Tables says otherwise.
package stage

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"

	"weir/internal/owntable"
	"weir/internal/seq"
)

// Default is the stage that is meant if none is named.
const Default = "default"

// Stage is a deployment, as a command line or an environment names it. The zero Stage is
// the default one, in which all tables have the model's names.
type Stage struct {
	Name   string // see CheckName
	Tables []Pair // in any order; New checks them
}

// Pair is the real name of one of the model's tables.
type Pair struct{ Logical, Real string }

var (
	stageName = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)
	realName  = regexp.MustCompile(`^[A-Za-z0-9_.-]{3,255}$`)
)

// CheckName returns an error unless a stage may have the name.
func CheckName(name string) error {
	if name == "" {
		return fmt.Errorf("the name of the stage is empty; leave it out for the stage %s", Default)
	}
	if !stageName.MatchString(name) {
		return fmt.Errorf("the stage %.60q: the name of a stage has 1 to 32 lower-case letters, digits and hyphens, such as prod or eu-test-2", name)
	}
	return nil
}

// IsDefault reports whether the stage is the default one.
func (s Stage) IsDefault() bool { return s.Name == "" || s.Name == Default }

// Own is the real name of the stage's own table.
func (s Stage) Own() string {
	if s.IsDefault() {
		return owntable.TableName
	}
	return owntable.TableName + "-" + s.Name
}

// Dir is the directory in which the stage keeps its files, below the one that the user
// names. A stage has a directory of its own: a directory's store has one process at a
// time and one reader of each stream, and two stages share neither.
func (s Stage) Dir(base string) string {
	if s.IsDefault() || base == "" {
		return base
	}
	return filepath.Join(base, "stage-"+s.Name)
}

// Prefix is the beginning of the names of the stage's search indexes.
func (s Stage) Prefix() string {
	if s.IsDefault() {
		return ""
	}
	return s.Name + "-"
}

// Map is the map of tables as a flag has it, "" for none.
func (s Stage) Map() string {
	return strings.Join(seq.Map(s.Tables, func(p Pair) string { return p.Logical + "=" + p.Real }), ",")
}

// name is the stage's name for people.
func (s Stage) name() string { return cmp.Or(s.Name, Default) }
