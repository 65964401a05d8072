package ingest

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/model"
	"weir/internal/seq"
	"weir/internal/value"
)

// Op is the action of a command on a row.
type Op string

// The operations.
const (
	Create Op = "create" // the row must not exist; an expired row does not count
	Put    Op = "put"    // create the row, or replace all that the application wrote
	Update Op = "update" // change the fields given; null removes one
	Delete Op = "delete" // delete the row; it is no error if it does not exist
)

// Command is one request to change a row, as a person, a program or a Lambda function
// sent it.
type Command struct {
	Op             Op
	Entity         string
	Item           value.Item // the fields given, by name, as ReadItem reads them
	IdempotencyKey string     // "" for none
	IfMatch        string     // a row's revision, "" for none; "*": the row must exist
	Seed           string     // generated names depend only on it; "": they are random
}

// Done is the outcome of a command.
type Done string

// The outcomes of a command. Unchanged means that the row was already as requested.
const (
	Created   Done = "created"
	Replaced  Done = "replaced"
	Updated   Done = "updated"
	Deleted   Done = "deleted"
	Unchanged Done = "unchanged"
)

// Result is the outcome of a command. Err is nil, or a *Refusal if nothing was written,
// or another error if the outcome is unknown. In the last case, send the command again.
type Result struct {
	Row      value.Item // in a query's form: no bookkeeping, nothing hidden; nil after a delete
	Revision string     // of the row as it is now, for IfMatch; "" if there is none
	Done     Done
	Repeated bool // answered from its idempotency record
	Err      error
}

// Kind is why a command is refused. The kinds differ in the caller's next step.
type Kind uint8

// The kinds of refusal.
const (
	Invalid  Kind = iota // the command is wrong; change it
	Exists               // the row exists already
	Missing              // the row does not exist
	Taken                // a unique value belongs to another row
	Backward             // a status would move back
	Stale                // the row is not the one that IfMatch names
	Reused               // another command came with the same idempotency key
	TooLarge             // the row would be larger than a table allows
	NotJSON              // the text is not JSON
)

// kindNames are in the order of the kinds.
var kindNames = [...]string{"invalid", "exists", "missing", "taken", "backward", "stale", "reused", "too-large", "not-json"}

// String is the kind's name in logs and in answers to batches.
func (k Kind) String() string { return kindNames[k] }

// Refusal says why nothing was written.
// It is an error of the command, not of the store: the same command is refused again until it, or the rows, change.
type Refusal struct {
	Kind     Kind
	Problems []Problem // one at least
	More     int       // how many problems there are besides
	size     int       // of the problems, in bytes
}

// Problems beyond these bounds are counted, and not listed: each field of a large item may be one.
const (
	maxProblems     = 100
	maxProblemBytes = 64 << 10
	maxSentences    = 10 // of Error
)

// addProblem lists a problem, or counts it.
func (r *Refusal) addProblem(pointer, reason string) {
	if r.isFull() || r.size+len(pointer) > maxProblemBytes {
		r.More++
		return
	}
	r.size += len(pointer) + len(reason)
	r.Problems = append(r.Problems, Problem{pointer, reason})
}

// isFull reports whether problems are only counted.
func (r *Refusal) isFull() bool { return len(r.Problems) >= maxProblems || r.size > maxProblemBytes }

// Problem is one thing that is wrong. Pointer is an RFC 6901 pointer into the item, ""
// for the whole item. Reason is the end of a sentence that begins with the pointer: "is
// required".
type Problem struct {
	Pointer string
	Reason  string
}

// String is a sentence for people.
func (p Problem) String() string {
	if p.Pointer == "" {
		return p.Reason
	}
	return p.Pointer + " " + p.Reason
}

// Shown returns the refusal of a text that is no command as it may leave, for a reader other than its sender: a pointer stops
// at the name of an attribute that the model hides, and the reason quotes nothing of it.
func (r *Refusal) Shown(m *model.Model) *Refusal {
	out := *r
	out.Problems = slices.Clone(r.Problems)
	for i := range out.Problems {
		p := &out.Problems[i]
		if at, hides := m.ShownPointer(p.Pointer); hides {
			p.Pointer, p.Reason = at, m.ShownText(p.Reason)
		}
	}
	return &out
}

// Error lists the first problems of the command in one line, and counts the rest; servers answer with the list.
func (r *Refusal) Error() string {
	texts := seq.Map(r.Problems[:min(len(r.Problems), maxSentences)], func(p Problem) string { return p.String() })
	if more := len(r.Problems) - len(texts) + r.More; more > 0 {
		texts = append(texts, "and "+formatNumber(more)+" more")
	}
	return strings.Join(texts, "; ")
}

// newRefusal returns a refusal with one problem.
func newRefusal(kind Kind, pointer, format string, args ...any) *Refusal {
	return &Refusal{Kind: kind, Problems: []Problem{{pointer, fmt.Sprintf(format, args...)}}}
}

// escapePointer escapes the characters to which RFC 6901 gives a meaning.
var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

// Pointer is the RFC 6901 pointer to a member, given the names on the path to it.
func Pointer(path ...string) string {
	var b strings.Builder
	for _, p := range path {
		b.WriteByte('/')
		b.WriteString(escapePointer.Replace(p))
	}
	return b.String()
}
