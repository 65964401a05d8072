// Package doctor judges whether a model can run on AWS: facts in, findings out. It asks no
// service; the drivers fill the facts, and name those that they could not ask in Unknown.
//
// Every check gives a finding for each thing that it looks at, also where all is well, so that a
// list of findings says which facts were looked at. A finding is one of four verdicts. Unknown is never
// a good sign: it names the need of doctor to know more.
//
// The files:
//
//	doctor.go    facts and findings, and the order in which findings are shown
//	table.go     how a table differs from its definition (deploy tables asks that too), capacity, backups
//	stream.go    the functions that read a stream, their settings, and how many readers there are
//	account.go   credentials, clock, permissions, names, versions
//	search.go    the search cluster
package doctor

import (
	"cmp"
	"maps"
	"slices"
	"time"
)

// Verdict is the judgement of a finding.
type Verdict string

// The verdicts, from the one that stops weir to the one that is well.
const (
	Bad     Verdict = "bad"     // weir refuses to start, or cannot keep its promises
	Warn    Verdict = "warn"    // weir runs, and something costs more or goes wrong later
	Unknown Verdict = "unknown" // it could not be asked; the finding says which permission is needed
	OK      Verdict = "ok"
)

// Verdicts has all of them, the worst first.
var Verdicts = []Verdict{Bad, Warn, Unknown, OK}

// Finding is doctor's judgement of one thing. Its names are those of projector doctor -o json.
type Finding struct {
	Verdict Verdict `json:"verdict"`
	Subject string  `json:"subject"` // such as "table gallery"
	Check   string  `json:"check"`   // such as "stream"; the list is in docs/guide/doctor.md
	Says    string  `json:"says"`    // the fact, and its meaning
	Mend    string  `json:"mend,omitempty"`
}

// Fact is one answer, or why there is none.
type Fact[T any] struct {
	Is      T
	Unknown string // the permission or flag that is needed to know; "" if Is was asked
}

// Known is the fact of an answer. Not is the fact of a question that could not be asked.
// A zero answer is an answer too: Known(false) says that something is off.
func Known[T any](is T) Fact[T]           { return Fact[T]{Is: is} }
func Not[T any](needs string) Fact[T]     { return Fact[T]{Unknown: needs} }
func (f *Fact[T]) known() (is T, ok bool) { return f.Is, f.Unknown == "" }

// Facts are all that doctor judges.
// One value is one visit at one time. The permissions and tables are in the order in which they
// were asked.
type Facts struct {
	Command  func(verb string, args ...string) string // see model.Model.Command
	Identity Fact[Identity]
	// Concurrency is that of Lambda in the account.
	Concurrency Fact[Concurrency]
	// Ahead is how far the clock of this machine is ahead of the service's.
	Ahead       Fact[time.Duration]
	Names       Fact[Names]
	Catalog     Fact[Catalog]
	DeriveIn    string // --derive-in
	Tables      []Table
	Permissions []Permission
	// Search is the cluster of a model that has searches.
	Searches bool
	Search   Fact[Cluster]
}

// Blind names the tables that could not be described: nothing else that is found says whether weir can start on them.
func (f *Facts) Blind() (tables []string) {
	for i := range f.Tables {
		if t := &f.Tables[i]; t.Unknown != "" {
			tables = append(tables, t.Want.Name)
		}
	}
	return tables
}

// Examine judges the facts. The same facts give the same findings, the worst first; those of one verdict keep the
// order in which doctor looks.
// It asks no service and reads no clock, so a test can give it any setup.
func Examine(f *Facts) []Finding {
	var x examination
	x.examineIdentity(f)
	x.concurrency(f)
	x.clock(f)
	x.examineNames(f)
	x.examineVersions(f)
	for i := range f.Tables {
		x.table(f, &f.Tables[i])
	}
	x.examinePermissions(f)
	x.search(f)
	slices.SortStableFunc(x.all, func(a, b Finding) int {
		return cmp.Compare(slices.Index(Verdicts, a.Verdict), slices.Index(Verdicts, b.Verdict))
	})
	return x.all
}

// Count is how many findings have a verdict.
func Count(all []Finding, v Verdict) (n int) {
	for i := range all {
		if all[i].Verdict == v {
			n++
		}
	}
	return n
}

// examination gathers findings.
type examination struct{ all []Finding }

// beginFindings begins findings of one thing.
func (x *examination) beginFindings(name string) *subject { return &subject{x, name} }

// subject is the thing that findings are of.
type subject struct {
	x    *examination
	name string
}

// addFinding adds a finding. Findings are sorted by verdict at the end.
func (s *subject) addFinding(v Verdict, check, says, mend string) {
	s.x.all = append(s.x.all, Finding{Verdict: v, Subject: s.name, Check: check, Says: says, Mend: mend})
}

func (s *subject) ok(check, says string)         { s.addFinding(OK, check, says, "") }
func (s *subject) bad(check, says, mend string)  { s.addFinding(Bad, check, says, mend) }
func (s *subject) warn(check, says, mend string) { s.addFinding(Warn, check, says, mend) }

// addUnknown names the need to know more: a permission, a flag, or AWS itself.
func (s *subject) addUnknown(check, needs, how string) {
	s.addFinding(Unknown, check, "unknown: needs "+needs, how)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
