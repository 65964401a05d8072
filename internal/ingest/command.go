package ingest

import (
	"fmt"
	"strings"

	"weir/internal/value"
)

// Op is what a command does with a row.
type Op string

// The operations.
const (
	Create Op = "create" // the row must not be there; one past its expiry is not
	Put    Op = "put"    // create, or replace all that the application wrote
	Update Op = "update" // change the fields given; null removes one
	Delete Op = "delete" // the row goes; one that is not there is no error
)

// Command is one wish of a person, a program or a Lambda, as it came in.
type Command struct {
	Op             Op
	Entity         string
	Item           value.Item // what was given, by field name, as ReadItem reads it
	IdempotencyKey string     // "" for none
	IfMatch        string     // a row's revision, "" for none; "*": the row must be there
	Seed           string     // what new names are made from, the same of the same; "": they are random
}

// Done is what a command did.
type Done string

// What a command did. Unchanged says that everything was as wished already.
const (
	Created   Done = "created"
	Replaced  Done = "replaced"
	Updated   Done = "updated"
	Deleted   Done = "deleted"
	Unchanged Done = "unchanged"
)

// Result says what became of a command. Err is nil, a *Refusal when nothing
// happened, or another error when nobody knows: send the command again.
type Result struct {
	Row      value.Item // as a query gives it: no bookkeeping, nothing hidden, flags as booleans; nil after a delete
	Revision string     // of the row as it stands, for IfMatch; "" where there is none
	Done     Done
	Repeated bool // answered from its idempotency record
	Err      error
}

// Kind is why a command is refused, by what the caller does next.
type Kind uint8

// The kinds of refusal.
const (
	Invalid  Kind = iota // the command is wrong; change it
	Exists               // the row is there already
	Missing              // there is no such row
	Taken                // a unique value belongs to another row
	Backward             // a status would go back
	Stale                // the row is not the one that IfMatch names
	Reused               // the idempotency key came with another command
	TooLarge             // more than a row can hold
	NotJSON              // the text is no JSON
)

var kindNames = [...]string{"invalid", "exists", "missing", "taken", "backward", "stale", "reused", "too-large", "not-json"}

func (k Kind) String() string { return kindNames[k] }

// Refusal says why nothing was written.
type Refusal struct {
	Kind     Kind
	Problems []Problem // one at least
}

// Problem is one thing that is wrong. Pointer is an RFC 6901 pointer into the item,
// "" for the whole; Reason goes on where the pointer ends: "is required".
type Problem struct {
	Pointer string
	Reason  string
}

func (p Problem) String() string {
	if p.Pointer == "" {
		return p.Reason
	}
	return p.Pointer + " " + p.Reason
}

func (r *Refusal) Error() string {
	texts := make([]string, len(r.Problems))
	for i, p := range r.Problems {
		texts[i] = p.String()
	}
	return strings.Join(texts, "; ")
}

func refuse(kind Kind, pointer, format string, args ...any) *Refusal {
	return &Refusal{kind, []Problem{{pointer, fmt.Sprintf(format, args...)}}}
}

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

// pointer is the RFC 6901 pointer to a member within a member.
func pointer(path ...string) string {
	var b strings.Builder
	for _, p := range path {
		b.WriteByte('/')
		b.WriteString(escapePointer.Replace(p))
	}
	return b.String()
}

// Pointer is the RFC 6901 pointer to a member, within members.
func Pointer(path ...string) string { return pointer(path...) }
