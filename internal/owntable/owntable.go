// Package owntable defines the layout of weir's own table, "weir": the keys and attributes of
// every kind of row in it. Only weir writes to that table. SHARD in the name of an attribute
// is a short shard key. The kinds of rows, by the start of their partition key k (s is the
// sort key):
//
//	ledger|MODEL|ROW      s ""      the ledger of one target row: accumulators and positions
//	value|MODEL|ROW       s A|HASH  how many rows have a value of the distinct A of that row
//	set|MODEL|ROW         s PATH    a node of the tree behind the set in that row
//	feed|MODEL|RULE|KEY   s ""      the moments of a list of followers: a counter of its own
//	feed|MODEL|RULE|KEY   s HASH    one follower on that list, and since which moment
//	mark|MODEL|ROW        s HASH    contribution mark of a build: the amounts that a source row has added, and its last change
//	tomb|ROW              s ""      a row that weir made and deleted, and at which position
//	seen|ROW              s ""      the newest recorded removal of a source row that was replayed
//	seen|TABLE            s ""      the time up to which such removals were forgotten
//	follow|MODEL|E.F|ROW  s ""      value of field F of that row, or that the row is gone
//	follow|MODEL|E.F|ROW  s HASH    one row that follows it
//	check|MODEL|GROUP     s SHARD   the frontier of a shard: all records up to it are applied
//	tail|MODEL|SHARD      s POSITION marks of records for which a function's checkpoint has no room
//	lease|MODEL           s ""      lease: which process reads the streams
//	stream|MODEL          s TABLE   which streams of a table are read
//	jobs|MODEL            s HASH    a long list that is being processed in pieces
//	fact|MODEL|E.A|ROW    s NAME    a report of a row for the status of that row, or for a latest: see fact.go
//	fact|MODEL|E.L|NAMES  s NAME    a row that a list stands for ("others"), or whose status depends on those
//	dead|MODEL            s ID      dead letter: a record or an effect that could not be applied
//	deadpart|MODEL|ID     s NUMBER  a part of a dead letter's body
//	claim|MODEL|E.F|VALUE s ""      which row holds this value of field F, which is unique
//	once|MODEL|KEY        s ""      the result of the command with an idempotency key
//	secret                s cursor  the key that signs paging cursors
//	catalog|MODEL         s ""      the model's catalog: tables, readers, derivations
//	made|TABLE            s ""      a note that a replay made the table, with the table's id
//	move|MODEL            s NAME    a migration in progress, with the position of its scan
//	fill|MODEL            s TABLE   the position of a backfill
//	build|MODEL           s GEN|SEG a segment of an online build; "" the builds: see build.go
//	search|MODEL          s HASH  a search generation: where its indexes are, and how far they are filled
//	pending|MODEL|HASH|B  s INDEX|ID a document that an index of that generation did not take in time
//	footprint|MODEL       s DERIVATION HASH  the values of a derivation by one definition
//	stage|TABLE           s ""      which model derives from a table, and, in "weir" alone, which stage it belongs to
//
// ROW is a row's table and key as text, or its hash if that text is long, with the ends of the key. The attributes
// of a ledger:
//
//	p:SHARD  position of the last record of that shard that the accumulators include
//	a:ATTR   a count or a sum, or how many values a distinct has; c:ATTR is the count that divides a mean's sum
//	h:ATTR   the end of a skip: names among which no fact of a latest holds; absent for none
//	g:ATTR   the beginning of that skip, with the opposite digits
//	i:ATTR   the ranges of names within that skip in which facts may hold; absent for none
//	n        version of the ledger, which the target publishes as attribute "weir"
//	e        how often positions were removed; absent for never
//	q        id of the dead letter that says that the target refuses all, and why; absent for none
//	u        the same of tallies that cannot be shown
//	m        the same of the statuses that cannot be computed
//	x        when the ledger expires, empty and without a target; absent for never
//
// The attributes of a followed value, and of an entry on its list of followers:
//
//	p        position of the change that set the value, or of its row's deletion
//	v        the value; if the row is gone and a follower keeps it, the last value
//	g        true if the row is gone
//	n        how often a follower began to keep the last value; guards it against expiry
//	x        expiry time of a value whose row is gone; absent while a follower keeps it
//	t, key   table and key of the row followed; on a list entry, of the follower
//	a        on a list entry: the attribute that follows
package owntable

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// TableName is the name of weir's own table. It has no stream.
const TableName = "weir"

// Attributes that weir writes on rows of the application's tables. On a target of
// tallies, Version holds the version n of its ledger. On a row that only weir writes,
// Version holds the position of the change that last wrote it. SeenMark is the newest
// recorded change that was replayed into a row.
const (
	Version  = "weir"
	SeenMark = prefix + "seen"
	Own      = prefix + "own" // the application's values of attributes that a status replaced
	prefix   = "weir."
	// Moved marks a row that a migration made or moved. It says which row it came from,
	// or which rows it became, and its content at that time (see ingest/migrate.go).
	Moved = prefix + "moved"
)

// EntityMark says in an answer with rows of several entities which entity a row is. It is never
// stored.
const EntityMark = prefix + "entity"

// InnerLeaf marks a row of a set that holds no members because it was split.
const InnerLeaf = prefix + "inner"

// Grouped stands for how many source rows a group has where ledgers name attributes. No row
// shows it.
const Grouped = prefix + "rows"

// FollowVersion names the attribute that holds the position of the followed value in
// attr.
func FollowVersion(attr string) string { return prefix + attr }

// FollowsMark reports whether weir's note of a followed value in attr would have the name of another mark on such a row.
func FollowsMark(attr string) bool {
	return slices.Contains([]string{SeenMark, Own, Moved, InnerLeaf}, FollowVersion(attr)) || strings.HasSuffix(attr, followsEnd)
}

// FollowsAttr names the attribute that says which value attr follows. It holds the hash of
// the value's partition in the own table.
func FollowsAttr(attr string) string { return prefix + attr + followsEnd }

const followsEnd = ".of"

// RecordedVersion returns the Version of a row that is made from a change of a recording, at a position there. It is below
// that of every row that is made from the store's stream.
func RecordedVersion(p events.Position) value.Value {
	return value.OfBinary(events.Position{}.Value().Text() + p.Value().Text())
}

// IsOurs reports whether the attribute is weir's bookkeeping. Queries never return it.
func IsOurs(name string) bool { return name == Version || strings.HasPrefix(name, prefix) }

// Attributes of the rows of the own table.
const (
	Partition = "k"
	Sort      = "s"
	Position  = "p"
	Count     = "n"
	Stale     = "q"
	Unshown   = "u"
	Unmoved   = "m"
	Pruned    = "e"
	Expiry    = "x"
)

// PositionOf names the attribute of a ledger that holds the position of a shard. SumAccumulator, RowsAccumulator,
// MemberAmount and Values name its other attributes.
func PositionOf(shardKey string) string { return "p:" + shardKey }

// shardOfPosition returns the shard whose position an attribute holds; ok is false for any
// other attribute.
func shardOfPosition(name string) (shardKey string, ok bool) {
	return strings.CutPrefix(name, PositionOf(""))
}

// Positions returns the positions of shards that a row holds.
func Positions(row value.Item) (at []Applied) {
	for _, a := range row {
		if key, ok := shardOfPosition(a.Name); ok && !IsUnlogged(key) {
			at = append(at, Applied{key, events.PositionFrom(a.Value)})
		}
	}
	return at
}

// SumAccumulator names the accumulator of a count or a sum that is published as attr.
func SumAccumulator(attr string) string { return "a:" + attr }

// RowsAccumulator names the accumulator with the count that divides a mean's sum.
func RowsAccumulator(attr string) string { return "c:" + attr }

// MemberAmount names the amount for the member v of the set attr.
func MemberAmount(attr, v string) string { return Values(attr) + v }

// Values returns the prefix of the names of all members of a set. No name begins with that of another attribute: an
// attribute with a colon is escaped (EscapesValues).
func Values(attr string) string { return "d:" + valuesEscape.Replace(attr) + ":" }

var valuesEscape = strings.NewReplacer("%", "%25", ":", "%3A")

// EscapesValues reports whether the names of a set's members have its attribute in another form than it has.
func EscapesValues(attr string) bool { return strings.ContainsAny(attr, "%:") }

// IsPosition reports whether an attribute of a ledger is the position of a shard.
func IsPosition(name string) bool { return strings.HasPrefix(name, PositionOf("")) }

// IsSum reports whether an attribute of a ledger is an accumulator of any kind.
func IsSum(name string) bool {
	return strings.HasPrefix(name, SumAccumulator("")) || strings.HasPrefix(name, RowsAccumulator(""))
}

// Table returns the definition of the own table.
func Table() store.Table {
	return store.Table{
		Name: TableName,
		Key:  store.KeySchema{Partition: store.KeyAttr{Name: Partition, Type: value.String}, Sort: store.KeyAttr{Name: Sort, Type: value.String}},
		TTL:  Expiry,
	}
}

const emptySort = "-"

// Ref refers to the row of the own table with the given partition and sort key. DynamoDB
// does not allow an empty sort key, so "" is written as "-".
func Ref(k, s string) store.Ref {
	if s == "" {
		s = emptySort
	}
	return store.Ref{Table: TableName, Key: store.Key{Partition: value.OfString(k), Sort: value.OfString(s)}}
}

// RowsOf asks for all rows of a partition of the own table, in the order of their sort keys.
func RowsOf(partition string) store.Query {
	return store.Query{Table: TableName, Partition: value.OfString(partition)}
}

// Mark refers to the contribution mark of a source row for a target, by the name of a build's ledgers.
func Mark(model string, target, source store.Ref) store.Ref {
	return Ref("mark|"+model+"|"+RowText(target), Hash(RowText(source)))
}

// ReplayRemoval refers to the row that records the removal of a source row by a replay.
func ReplayRemoval(row store.Ref) store.Ref { return Ref("seen|"+RowText(row), "") }

// ShardRef refers to the checkpoint of a shard.
type ShardRef struct {
	store.Ref
	Of, Shard string // the table and the shard
}

// Checkpoint refers to the checkpoint of a model in a shard.
func Checkpoint(model, table, shard string) ShardRef {
	return ShardRef{CheckpointOf(model, ShardKey(table, shard)), table, shard}
}

// CheckpointOf refers to the checkpoint of a model in the shard with a short key.
func CheckpointOf(model, shardKey string) store.Ref {
	return Ref(Checkpoints(model), shardKey)
}

// Checkpoints returns the partition key of a model's checkpoints.
func Checkpoints(model string) string { return "check|" + model }

// Kind returns the kind of the rows with the given partition key: the key's first word,
// such as "check" or "ledger".
func Kind(partition string) string {
	kind, _, _ := strings.Cut(partition, "|")
	return kind
}

// The kinds of rows that other packages tell apart.
const (
	KindLedger      = "ledger"
	KindCheckpoint  = "check"
	KindDead        = "dead"
	KindFact        = "fact"
	KindFollow      = "follow"
	KindLease       = "lease"
	KindSubscribers = "feed"
	KindMark        = "mark"
	KindSecret      = "secret"
	KindSet         = "set"
	KindTombstone   = "tomb"
	KindValue       = "value"
	KindDeadPart    = "deadpart"
)

// Lease refers to the lease of a model: which process reads its streams.
func Lease(model string) store.Ref { return Ref("lease|"+model, "") }

// Stream refers to the row that lists the streams of a table that a model's readers have
// found so far.
func Stream(model, table string) store.Ref { return Ref("stream|"+model, table) }

// MadeTable refers to the note that a replay made a table.
func MadeTable(table string) store.Ref { return Ref("made|"+table, "") }

// Migration refers to the note that a migration is in progress.
func Migration(model, name string) store.Ref { return Ref("move|"+model, name) }

// Backfill refers to the row that holds the position of a backfill in a table.
func Backfill(model, table string) store.Ref { return Ref("fill|"+model, table) }

// JoinTexts joins texts into one. Different lists of texts give different results.
func JoinTexts(texts []string) string {
	var b strings.Builder
	for i, t := range texts {
		if i > 0 {
			b.WriteByte('|')
		}
		writeEscaped(&b, t)
	}
	switch text := b.String(); {
	case len(text) > maxText:
		return "#" + Hash(text)
	case strings.HasPrefix(text, "#"): // otherwise a typed text could equal a long text's hash
		return "%23" + text[1:]
	default:
		return text
	}
}

// Claim refers to the row that says which row of the entity has a value of a unique field;
// value is the value's text, as value.Scalar writes it.
func Claim(model, entity, field, value string) store.Ref {
	return Ref("claim|"+model+"|"+entity+"."+field+"|"+JoinTexts([]string{value}), "")
}

// CommandResult refers to the recorded result of the command with an idempotency key.
func CommandResult(model, key string) store.Ref {
	return Ref("once|"+model+"|"+JoinTexts([]string{key}), "")
}

// Dead returns the partition key of a model's dead letters.
func Dead(model string) string { return "dead|" + model }

// IsLetter reports whether rows of the own table with a partition key are dead letters, or
// parts of one.
func IsLetter(partition string) bool {
	return strings.HasPrefix(partition, "dead|") || Kind(partition) == KindDeadPart
}

// DeadPart refers to part i of the body of the dead letter with the given id.
func DeadPart(model, id string, i int) store.Ref {
	return Ref("deadpart|"+model+"|"+id, fmt.Sprintf("%04d", i))
}

// RowText returns a row's table and key as one text. Different rows have different texts. A long text is
// replaced by its hash, with the attributes that LongRowOf reads.
func RowText(r store.Ref) string {
	var b strings.Builder
	b.Grow(len(r.Table) + len(r.Key.Partition.Text()) + len(r.Key.Sort.Text()) + 4)
	rowText(&b, r, writeEscaped)
	if b.Len() <= maxText {
		return b.String()
	}
	long := "#" + Hash(b.String()) + "|"
	b.Reset()
	rowText(&b, r, writeEnds)
	return long + b.String()
}

// rowText writes a row's table and key. part writes the text of a part of the key.
func rowText(b *strings.Builder, r store.Ref, part func(b *strings.Builder, s string)) {
	b.WriteString(r.Table)
	for _, v := range [...]value.Value{r.Key.Partition, r.Key.Sort} {
		if v.IsMissing() {
			continue
		}
		b.WriteByte('|')
		if v.Kind() != value.String {
			b.WriteString(v.Kind().Descriptor() + ":")
		}
		part(b, v.Text())
	}
}

// RowOf returns the row of which RowText returned this text. ok is false where the text
// does not tell, because the key is long.
func RowOf(text string) (r store.Ref, ok bool) {
	parts := strings.Split(text, "|")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || parts[0][0] == '#' {
		return r, false
	}
	r.Table = parts[0]
	for i, part := range parts[1:] {
		v := value.OfString(unescapeText(part))
		if kind, of, typed := strings.Cut(part, ":"); typed {
			switch kind {
			case value.Number.Descriptor():
				n, err := value.ParseNumber(unescapeText(of))
				if err != nil {
					return r, false
				}
				v = n
			case value.Binary.Descriptor():
				v = value.OfBinary(unescapeText(of))
			default:
				return r, false
			}
		}
		if i == 0 {
			r.Key.Partition = v
		} else {
			r.Key.Sort = v
		}
	}
	return r, RowText(r) == text
}

// LongRowOf returns the table of a row whose key is long, and how the parts of its key begin and end, of
// which RowText returned this text. Rows that differ in the middle of a part have one shape. ok is false for any
// other text.
func LongRowOf(text string) (table string, key Shape, ok bool) {
	parts := strings.Split(text, "|")
	if len(parts) < 3 || len(parts) > 4 || !strings.HasPrefix(text, "#") {
		return "", key, false
	}
	for i, part := range parts[2:] {
		if _, of, typed := strings.Cut(part, ":"); typed {
			part = of
		}
		begins, ends, cut := strings.Cut(part, elided)
		if part = unescapeText(begins); cut {
			part += "*" + unescapeText(ends)
		}
		if i == 0 {
			key.Partition = part
		} else {
			key.Sort = part
		}
	}
	return parts[1], key, true
}

// elided stands for the middle of a long part of a key. Escaped text has no such sign.
const elided = "%*"

// writeEnds is writeEscaped for the first and the last end bytes of a long text.
func writeEnds(b *strings.Builder, s string) {
	if len(s) <= 2*end {
		writeEscaped(b, s)
		return
	}
	writeEscaped(b, s[:end])
	b.WriteString(elided)
	writeEscaped(b, s[len(s)-end:])
}

// end is how much RowText keeps of each end of a part of a long key. A partition key of DynamoDB has room for 2,048
// bytes, of which these four take 768 at the most, and a table's name 255.
const end = 64

// unescapeText undoes writeEscaped.
func unescapeText(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				b.WriteByte(byte(n))
				i += 2
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// maxText keeps every key of the own table well within DynamoDB's limits. A longer text is replaced by its
// hash.
const maxText = 700

// writeEscaped appends s with every |, : and %, every control character and every
// non-ASCII byte as %XX. So parts joined by | or : stay distinguishable, and the result is
// valid UTF-8.
func writeEscaped(b *strings.Builder, s string) {
	plain := 0 // the first byte that is not written yet
	for i := 0; i < len(s); i++ {
		if c := s[i]; c == '|' || c == ':' || c == '%' || c < ' ' || c >= 0x7f {
			const hex = "0123456789ABCDEF"
			b.WriteString(s[plain:i])
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
			plain = i + 1
		}
	}
	b.WriteString(s[plain:])
}

// Hash returns a short name for a long text. It has 132 bits, so in practice two texts
// never share one.
func Hash(s string) string { return hashOf([]byte(s)) }

// hashOf is Hash of bytes.
func hashOf(b []byte) string {
	sum := sha256.Sum256(b)
	var text [44]byte
	base64.RawURLEncoding.Encode(text[:], sum[:])
	return string(text[:22])
}

// RefItem returns the key of a row of the own table as attributes.
func RefItem(r store.Ref) value.Item {
	return value.Item{{Name: Partition, Value: r.Key.Partition}, {Name: Sort, Value: r.Key.Sort}}
}
