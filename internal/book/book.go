// Package book is the layout of weir's own table, "weir": what stands in which
// row, and nothing else writes there. Its rows, by the start of their partition
// key k (s is the sort key):
//
//	book|MODEL|ROW        s ""      accumulators and positions of one target row
//	set|MODEL|ROW         s PATH    a node of the tree that keeps the set in that row
//	each|MODEL|RULE|KEY   s ""      the moments of a list of followers
//	each|MODEL|RULE|KEY   s HASH    one follower, and since which moment
//	mark|MODEL|ROW        s HASH    the last change of one row that counts there, without lanes
//	mark|MODEL|RULE|KEY   s HASH    the last change of one row that followers are told of, without lanes
//	tomb|ROW              s ""      a row of ours that was deleted, and at which position
//	seen|ROW              s ""      the newest recorded removal replayed of a core row
//	follow|MODEL|E.F|ROW  s ""      the value of field F of that row, for its followers, or that the row is gone
//	follow|MODEL|E.F|ROW  s HASH    one row that follows it
//	check|MODEL|GROUP     s SHARD   how far a group of consumers has read
//	past|MODEL            s GROUP   the counts of the shards that are forgotten
//	lease|MODEL           s SHARD   which process reads a shard
//	stream|MODEL          s TABLE   which streams of a table are read
//	jobs|MODEL            s HASH    a long list being worked through
//	jobs|MODEL            s ~ID     that the parts of a dead letter are being written or removed
//	fact|MODEL|E.A|ROW    s WORD|ID what a row tells of the steps of that row
//	fact|MODEL|E.L|NAMES  s m|WHO   one of the others that a list stands for
//	fact|MODEL|E.L|NAMES  s t|HASH  a row that goes by them
//	dead|MODEL            s ID      a record or an effect that could not be applied
//	deadpart|MODEL|ID     s NUMBER  a part of its body
//	lambda|MODEL          s TABLE   the order in which a function reads a stream
//	lambda|MODEL          s SHARD   how far it has read a shard
//	lanes|MODEL           s ""      the lanes that something may still come from, by shard
//	claim|MODEL|E.F|VALUE s ""      which row has the value in field F, which is unique
//	once|MODEL|KEY        s ""      what the command with an idempotency key did
//	secret                s cursor  the key that signs paging cursors
//	made|TABLE            s ""      that a replay made the table, and which one
//	move|MODEL            s NAME    that a migration is on, and how far its scan is
//	fill|MODEL            s TABLE   how far a backfill is
//	search                s INDEX   which instance of a search index has all documents
//
// ROW is a row's table and key as text, hashed when long. A book's attributes:
//
//	p:LANE   position of the last record of that lane in the accumulators
//	a:ATTR   a count or a sum; c:ATTR the count beside a mean's sum
//	a+N:ATTR the digits of a sum that are too far up or down for a:ATTR: see bands.go
//	d:ATTR:V how many rows hold the value V, for a distinct
//	n        version of the book, which the target publishes as attribute "weir"
//	q        how many parked effects wait for this target; absent or 0 when none
//	u        the dead letter that says which sums cannot be shown; absent when none
//
// Those of a followed value, and of a place on its list:
//
//	p        position of the change that set the value, or of the deletion of its row
//	v        the value; of a row that is gone its last one, where a follower keeps that
//	g        true when the row is gone
//	n        how often a follower came to keep the last value, so that none expires under it
//	x        when a value whose row is gone expires; absent while a follower keeps it
//	t, key   table and key of the row followed; of a place, of the follower
//	a        of a place: the attribute that follows
package book

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"weir/internal/store"
	"weir/internal/value"
)

// TableName is the name of weir's own table. It has no stream.
const TableName = "weir"

// Attributes that stand on the rows of applications' tables. Version is a book's
// n on a target of tallies, and on a row that only weir writes the position of
// the change that it was last written by. SeenMark is the newest recorded change
// that was replayed into a row.
const (
	Version  = "weir"
	SeenMark = prefix + "seen"
	Own      = prefix + "own" // what the application wrote under what steps show instead
	prefix   = "weir."
	// Moved stands on a row that a migration made, or moved: which row it came from,
	// or which rows it became, and what it was then (see package migrate).
	Moved = prefix + "moved"
)

// InnerLeaf marks a row of a set that holds no members because it was split.
const InnerLeaf = prefix + "inner"

// FollowVersion is the attribute that holds the position of the followed value in
// attr.
func FollowVersion(attr string) string { return prefix + attr }

// Follows is the attribute that says which value attr follows: the hash of the
// value's partition.
func Follows(attr string) string { return prefix + attr + ".of" }

// IsOurs reports whether the attribute is bookkeeping, which no reader is shown.
func IsOurs(name string) bool { return name == Version || strings.HasPrefix(name, prefix) }

// Attributes of the rows of our table.
const (
	Partition = "k"
	Sort      = "s"
	Position  = "p"
	Count     = "n"
	Parked    = "q"
	Unshown   = "u"
	Expiry    = "x"
	Told      = "v" // of a fact; absent when it was taken back
)

// Lane, Sum, Tally and Value name the attributes of a book.
func Lane(lane string) string { return "p:" + lane }

// Sum is the accumulator of a count or a sum published as attr.
func Sum(attr string) string { return "a:" + attr }

// Rows is the count that goes with a mean's sum.
func Rows(attr string) string { return "c:" + attr }

// Value is the count of rows that hold the value v, for the distinct attr.
func Value(attr, v string) string { return Values(attr) + v }

// Values is what the names of all counts of a distinct begin with.
func Values(attr string) string { return "d:" + attr + ":" }

// IsSum reports whether an attribute of a book is an accumulator, of whichever kind.
func IsSum(name string) bool {
	_, _, sum := Band(name)
	return sum || strings.HasPrefix(name, Rows("")) || strings.HasPrefix(name, "d:")
}

// Table describes our table.
func Table() store.Table {
	return store.Table{
		Name: TableName,
		Key:  store.KeySchema{Partition: store.KeyAttr{Name: Partition, Type: value.String}, Sort: store.KeyAttr{Name: Sort, Type: value.String}},
		TTL:  Expiry,
	}
}

// Ref is the row of our table with the keys given. DynamoDB has no empty sort key,
// so "" is written as "-".
func Ref(k, s string) store.Ref {
	if s == "" {
		s = "-"
	}
	return store.Ref{Table: TableName, Key: store.Key{Partition: value.OfString(k), Sort: value.OfString(s)}}
}

// Of is the book of a target row.
func Of(model string, target store.Ref) store.Ref { return Ref(Books(model)+RowText(target), "") }

// Books is what the partitions of a model's books begin with.
func Books(model string) string { return "book|" + model + "|" }

// Node is a node of the tree that keeps the set in a row.
func Node(model string, root store.Ref, path string) store.Ref {
	return Ref(Nodes(model)+RowText(root), path)
}

// PathOf is the path of the node that a row keeps.
func PathOf(row value.Item) string {
	if path := row.Get(Sort).Text(); path != "-" {
		return path
	}
	return ""
}

// Nodes is what the partitions of a model's sets begin with.
func Nodes(model string) string { return "set|" + model + "|" }

// List names the list of the followers that a rule finds by the values given.
func List(rule string, by []string) string {
	if len(by) == 0 {
		return rule
	}
	return rule + "|" + Texts(by)
}

// Followers is where a list of followers has its moments.
func Followers(model, list string) store.Ref { return Ref(Lists(model)+list, "") }

// Lists is what the partitions of a model's lists of followers begin with.
func Lists(model string) string { return "each|" + model + "|" }

// Follower is a follower's place in a list. The sort keys of followers are all
// above the list's own.
func Follower(list, row store.Ref) store.Ref {
	return Ref(list.Key.Partition.Text(), "m"+Hash(RowText(row)))
}

// Mark is where the last change of a source row that counted in a target's book is
// kept, where there are no lanes.
func Mark(model string, target, source store.Ref) store.Ref {
	return Ref("mark|"+model+"|"+RowText(target), Hash(RowText(source)))
}

// MemberMark is the same where the target is a set and the row says that it has a
// member.
func MemberMark(model string, set, source store.Ref, member string) store.Ref {
	return Ref("mark|"+model+"|"+RowText(set), Hash(RowText(source)+"|"+member))
}

// TellMark is where the last change of a row that a list of followers is told of is
// kept, where there are no lanes.
func TellMark(model, list string, source store.Ref) store.Ref {
	return Ref("mark|"+model+"|"+list, Hash(RowText(source)))
}

// Tombstone is where the deletion of a row of ours is remembered.
func Tombstone(row store.Ref) store.Ref { return Ref("tomb|"+RowText(row), "") }

// Seen is where the removal of a replayed core row is remembered.
func Seen(row store.Ref) store.Ref { return Ref("seen|"+RowText(row), "") }

// Followed is where a field's value is kept for the rows that follow it; the
// members are in the same partition.
func Followed(model, field string, source store.Ref) store.Ref {
	return Ref(FollowedOf(model, field)+RowText(source), "")
}

// FollowedOf is what the partitions of a followed field's values begin with.
func FollowedOf(model, field string) string { return FollowedIn(model) + field + "|" }

// FollowedIn is what the partitions of all followed values of a model begin with.
func FollowedIn(model string) string { return "follow|" + model + "|" }

// Member is the membership of a row in the partition of a followed value. The
// sort keys of members are all above the value's own.
func Member(followed store.Ref, attr string, row store.Ref) store.Ref {
	return Ref(followed.Key.Partition.Text(), "m"+Hash(attr+"|"+RowText(row)))
}

// Checkpoint is where a group of consumers keeps its place in a shard.
func Checkpoint(model, group, table, shard string) store.Ref {
	return Ref(Checkpoints(model, group), table+"|"+shard)
}

// Checkpoints is the partition of a group's checkpoints.
func Checkpoints(model, group string) string { return "check|" + model + "|" + group }

// Past is where the counts of the shards are that a group of consumers needs no
// checkpoint of any more.
func Past(model, group string) store.Ref { return Ref("past|"+model, group) }

// Kind is what kind of row the partition key given is of: what it begins with, such as
// "check" or "book".
func Kind(partition string) string {
	kind, _, _ := strings.Cut(partition, "|")
	return kind
}

// The kinds that others than this package tell apart.
const (
	KindBook       = "book"
	KindCheckpoint = "check"
	KindDead       = "dead"
	KindFact       = "fact"
	KindFollow     = "follow"
	KindLambda     = "lambda"
	KindLease      = "lease"
	KindList       = "each"
	KindMark       = "mark"
	KindSecret     = "secret"
	KindSet        = "set"
	KindTombstone  = "tomb"
)

// ShardOf is the table and the shard of a checkpoint's or a lease's sort key. No
// table has a | in its name.
func ShardOf(s string) (table, shard string) {
	table, shard, _ = strings.Cut(s, "|")
	return table, shard
}

// Lease is where it stands which process reads a shard for a model.
func Lease(model, table, shard string) store.Ref { return Ref("lease|"+model, table+"|"+shard) }

// Stream is where it stands which streams of a table a model's readers have met.
func Stream(model, table string) store.Ref { return Ref("stream|"+model, table) }

// Made is where it is remembered that a replay made a table.
func Made(table string) store.Ref { return Ref("made|"+table, "") }

// Migration is where it stands that a migration is on.
func Migration(model, name string) store.Ref { return Ref("move|"+model, name) }

// Backfill is where it stands how far a backfill is in a table.
func Backfill(model, table string) store.Ref { return Ref("fill|"+model, table) }

// Job is where the work on a long list is kept.
func Job(model, list string) store.Ref { return Ref(Jobs(model), Hash(list)) }

// Jobs is the partition of a model's jobs.
func Jobs(model string) string { return "jobs|" + model }

// Keeping is the note that the parts of a dead letter are being written or removed. It
// sorts behind all jobs.
func Keeping(model, id string) store.Ref { return Ref(Jobs(model), "~"+id) }

// Fact is a row that tells something: the list is the partition's name within the
// model.
func Fact(model, list, name string) store.Ref { return Ref(Facts(model)+list, name) }

// Facts is what the partitions of a model's facts begin with.
func Facts(model string) string { return "fact|" + model + "|" }

// Reached names what tells that a word is reached: by this row, or for this one.
func Reached(word, by string) string { return Reaching(word) + Hash(by) }

// Reaching is what all names begin with that tell that a word is reached.
func Reaching(word string) string { return Texts([]string{word}) + "|" }

// Other names one of the others of a list, Target a row that goes by them. All
// names of others come before all of targets.
func Other(who string) string { return OthersBegin + Hash(who) }

// Target names a row that goes by the others of a list.
func Target(row string) string { return TargetsBegin + Hash(row) }

// What the names of others and of targets begin with.
const (
	OthersBegin  = "m|"
	TargetsBegin = "t|"
)

// Texts writes texts as one, different for different ones.
func Texts(texts []string) string {
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
	case strings.HasPrefix(text, "#"): // or somebody types what a long text becomes
		return "%23" + text[1:]
	default:
		return text
	}
}

// Lanes is where functions that read a model's streams by shard keep the lanes.
func Lanes(model string) store.Ref { return Ref("lanes|"+model, "") }

// Claim is where it stands which row has a value of a unique field.
func Claim(model, field, value string) store.Ref {
	return Ref("claim|"+model+"|"+field+"|"+Texts([]string{value}), "")
}

// Once is where it stands what the command with an idempotency key did.
func Once(model, key string) store.Ref { return Ref("once|"+model+"|"+Texts([]string{key}), "") }

// Dead is the partition of what could not be applied.
func Dead(model string) string { return "dead|" + model }

// DeadPart is a part of the body of what could not be applied.
func DeadPart(model, id string, i int) store.Ref {
	return Ref("deadpart|"+model+"|"+id, fmt.Sprintf("%04d", i))
}

// RowText writes a row's table and key as one text, different for different rows.
func RowText(r store.Ref) string {
	var b strings.Builder
	b.Grow(len(r.Table) + len(r.Key.Partition.Text()) + len(r.Key.Sort.Text()) + 4)
	b.WriteString(r.Table)
	for _, v := range [...]value.Value{r.Key.Partition, r.Key.Sort} {
		if v.IsMissing() {
			continue
		}
		b.WriteByte('|')
		if v.Kind() != value.String {
			b.WriteString(v.Kind().Descriptor() + ":")
		}
		writeEscaped(&b, v.Text())
	}
	if b.Len() > maxText {
		return "#" + Hash(b.String())
	}
	return b.String()
}

// maxText keeps every key of ours within DynamoDB's 1,024 bytes for a sort key.
const maxText = 700

// writeEscaped keeps the parts of a text apart: no bare | or : at its ends, and no
// bytes that are not UTF-8.
func writeEscaped(b *strings.Builder, s string) {
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '|' || c == ':' || c == '%' || c < ' ' || c >= 0x7f:
			const hex = "0123456789ABCDEF"
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		default:
			b.WriteByte(c)
		}
	}
}

// Hash is a short name for a long text: 132 bits, so that two texts never share
// one in practice.
func Hash(s string) string { return HashOf([]byte(s)) }

// HashOf is Hash of bytes.
func HashOf(b []byte) string {
	sum := sha256.Sum256(b)
	var text [44]byte
	base64.RawURLEncoding.Encode(text[:], sum[:])
	return string(text[:22])
}

// RefItem is the key of a row of our table as attributes.
func RefItem(r store.Ref) value.Item {
	return value.Item{{Name: Partition, Value: r.Key.Partition}, {Name: Sort, Value: r.Key.Sort}}
}
