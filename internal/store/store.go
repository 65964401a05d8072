// Package store is where rows live: the contract that every driver keeps, in prose and
// code here and as a suite in storetest. The embedded driver, the DynamoDB driver and the
// store of the simulator pass the suite.
//
// The contract is as small as its users: conditional writes of one row, all-or-
// nothing writes of a few, strong reads, key queries, and each table's stream.
// It is the part of DynamoDB that exactly-once bookkeeping needs, without the
// expression language. A Store is all of it. There are no optional parts that a user
// finds by a type assertion, so a wrapper that embeds a Store loses none.
//
// What every driver owes:
//
//   - Atomicity. One Write is atomic: its condition and effect, its index entries
//     and its stream record happen together or not at all. A Transact is atomic even
//     across separate reads: a reader that sees one row's new value sees the others'
//     new values, or later ones. Two Writes of one Write call are not atomic together.
//   - Order. Writes of one call to one key happen in the order given; nothing is
//     promised between keys. Each change of a row appears in its table's stream
//     exactly once, and the changes of one row in the order they happened. A write
//     that changes nothing leaves no stream record.
//   - Arrival. An acknowledged change may be missing from its stream for a while. Tip
//     says when it is there.
//   - Durability. What was acknowledged survives a crash of the process and of the
//     machine at the latest from the next Sync or Close on. Before, it may be lost,
//     but only together with everything that was written after it, in any table: so
//     what a reader of the stream writes back into the store is never there without
//     the record that caused it, and lost positions may be given out again. Call Sync
//     before passing data read here to another system, such as an index or a caller.
//   - Retry. An error that is none of this package's says nothing about whether the
//     write happened. The caller sends it again: conditions make that safe. A driver
//     itself sends a call again only where that changes nothing.
//   - Ownership. Slices of writes, references, conditions and operations passed in
//     belong to the driver until the call returns. Items and values never change,
//     and so both sides may keep them and share their memory.
//   - Errors. What the caller can act on wraps one of this package's errors, with the
//     operation, table and key added once.
//
// Strings in keys are compared bytewise, numbers by value, binary bytewise.
package store

import (
	"context"
	"errors"
	"time"

	"weir/internal/events"
	"weir/internal/value"
)

// Limits that a driver enforces before it touches anything, DynamoDB's own.
const (
	MaxItemBytes      = 400 << 10 // an item, counted by value.Item.Size
	MaxPartitionBytes = 2048      // a partition key value
	MaxSortBytes      = 1024      // a sort key value
	MaxTransact       = 100       // writes in a transaction
	MaxPageBytes      = 1 << 20   // a page of a query, before filters
)

// The kinds of refusal, by what the caller does next. They come wrapped, with
// the operation, table and key added once.
var (
	// ErrCondition: the condition was false; nothing happened. Look at the row.
	ErrCondition = errors.New("the condition does not hold")
	// ErrRefused: this write can never succeed as it is (too large, a key
	// attribute of the wrong type, a number out of range). Park it.
	ErrRefused = errors.New("the write is refused")
	// ErrConflict: a transaction met another; nothing happened. Send it again.
	ErrConflict = errors.New("the transaction met another")
	// ErrNoTable: no such table or index. A mistake in configuration.
	ErrNoTable = errors.New("no such table or index")
	// ErrTrimmed: the stream no longer holds the position asked for: a gap.
	ErrTrimmed = errors.New("the stream was trimmed past this position")
	// ErrOwned: another process has the embedded directory. Its text says who.
	ErrOwned = errors.New("the data directory is in use")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed")
)

// KeyType is the DynamoDB type of a key attribute: value.String, value.Number or
// value.Binary.
type KeyType = value.Kind

// KeyAttr names a key attribute and its type; the zero KeyAttr is "none".
type KeyAttr struct {
	Name string
	Type KeyType
}

// KeySchema is a table's or an index's key. Sort.Name is "" where there is none.
type KeySchema struct {
	Partition, Sort KeyAttr
}

// Table describes a table, as it must exist.
type Table struct {
	Name    string
	Key     KeySchema
	Indexes []Index
	TTL     string // the attribute with the expiry in epoch seconds, "" for none
	Stream  bool   // keeps a stream with both images
}

// Index is a secondary index: an entry for each row that has all of the index's
// key attributes, with the right types, and none for other rows. On a write whose
// row has an index key attribute of the wrong type, or an empty string in one, the
// driver answers ErrRefused, as DynamoDB does.
type Index struct {
	Name     string
	Key      KeySchema
	Local    bool // shares the table's partition key
	KeysOnly bool // holds only the keys of the table and the index
}

// Index finds an index by name.
func (t *Table) Index(name string) *Index {
	for i := range t.Indexes {
		if t.Indexes[i].Name == name {
			return &t.Indexes[i]
		}
	}
	return nil
}

// Key is the primary key of a row; Sort is Missing where the table has none.
type Key struct {
	Partition, Sort value.Value
}

// KeyOf takes a row's key out of its attributes; ok is false when an attribute is
// absent or of the wrong type.
func (t *Table) KeyOf(it value.Item) (k Key, ok bool) {
	k.Partition = it.Get(t.Key.Partition.Name)
	ok = k.Partition.Kind() == t.Key.Partition.Type
	if t.Key.Sort.Name != "" {
		k.Sort = it.Get(t.Key.Sort.Name)
		ok = ok && k.Sort.Kind() == t.Key.Sort.Type
	}
	return k, ok
}

// Item is the key as attributes.
func (t *Table) Item(k Key) value.Item {
	return value.NewItem(value.Attr{Name: t.Key.Partition.Name, Value: k.Partition}, value.Attr{Name: t.Key.Sort.Name, Value: k.Sort})
}

// Ref names a row of a table.
type Ref struct {
	Table string
	Key   Key
}

// Comparison is what a Test asks of an attribute.
type Comparison uint8

// The comparisons. Lt and Le are false for an absent attribute or one of another
// kind; Ne is true for both, Eq false.
const (
	Exists Comparison = iota
	Absent
	Eq
	Ne
	Lt
	Le
)

// Test asks one thing of one top-level attribute of the row.
type Test struct {
	Attr  string
	Is    Comparison
	Value value.Value
}

// Cond is a conjunction of disjunctions: every inner list needs one Test that
// holds. The empty Cond always holds. A row that is not there has no attributes;
// testing the partition key for Exists or Absent tests the row.
type Cond [][]Test

// OpKind is what an Op does.
type OpKind uint8

// The operations of an update, on top-level attributes other than the key.
const (
	Set    OpKind = iota // the attribute becomes Value
	Add                  // the number there (From where absent; 0 without From) plus Value
	Remove               // the attribute goes
)

// Op is one step of an update; a Write names each attribute at most once.
type Op struct {
	Kind  OpKind
	Attr  string
	Value value.Value
	From  value.Value
}

// Write is a conditional write of one row. Exactly one of Put, Ops, Delete and
// Check says what it does. An update (Ops) of a row that is not there makes one,
// unless the condition forbids it; a delete of one that is not there succeeds.
type Write struct {
	Ref
	If     Cond
	Put    value.Item // the whole row, key attributes included
	Ops    []Op
	Delete bool
	Check  bool // in a Transact: only the condition

	// Return asks for the row as it is after the write (or, when the condition
	// failed, as it stands) in the Outcome.
	Return bool

	// Origin, when set, travels with the stream record of this write, whose time
	// and origin position it becomes. A driver whose stream cannot carry it leaves
	// it out.
	Origin *Origin
}

// Origin says when and where a replayed record was first written.
type Origin struct {
	Time     time.Time
	Position events.Position
	Expired  bool // the removal was TTL's
}

// Outcome is what became of one Write. Err is nil when it happened, and wraps
// one of this package's errors when it did not.
type Outcome struct {
	Err error
	Row value.Item // with Return: the row now, nil where there is none
}

// Query asks for rows of one table or index, in key order.
type Query struct {
	Table, Index string // Index "" is the table itself
	// Partition is the partition key's value. Missing reads everything, in no
	// particular order of partitions: a scan.
	Partition value.Value
	Sort      Range
	Reverse   bool
	Limit     int // rows a page at the most; 0 is up to MaxPageBytes
	After     *Cursor
}

// Range bounds the sort key; the zero Range is everything. Prefix is for strings
// and binary. Equal, Prefix and the bounds exclude each other.
type Range struct {
	Equal  value.Value
	Prefix value.Value
	From   value.Value // inclusive
	Below  value.Value // exclusive
}

// Cursor stands just after a row. Key is the row's primary key; Entry holds the
// index's key values where the query is on an index.
type Cursor struct {
	Key   Key
	Entry Key
}

// Page is part of a query's answer. Next is nil when nothing follows; a page may
// be empty and have a Next. An index's rows are whole unless it is KeysOnly, and
// may lag behind the table on DynamoDB.
type Page struct {
	Rows []value.Item
	Next *Cursor
}

// Shard is a part of a table's stream. A closed one ends; its children come
// after it.
type Shard struct {
	ID     string
	Parent string // "" for none
	Closed bool
}

// Records is a page of a shard. An empty page says nothing but that there is
// nothing now. End says that the shard is closed and wholly read.
type Records struct {
	Records []events.Record
	End     bool
}

// Tip is how far a store's streams have come at a moment. All that was acknowledged
// before one Tip can be read when the Seen of a later one is not below its Given and
// nothing more has come for its Lag. A store that numbers all changes in one order has
// no Lag; one that does not, as DynamoDB, has zero positions and relies on Lag alone.
type Tip struct {
	// Seen has been passed by every change that can be read now, in any table, and
	// every other change will be above it.
	Seen events.Position
	// Given is not below any change that was acknowledged by now.
	Given events.Position
	// Lag is how long after its acknowledgement a change may be missing from its stream.
	Lag time.Duration
}

// Source is where streams are read: a Store, or a reader between a store and its
// consumers. All methods may be called from many goroutines.
type Source interface {
	// Shards lists a table's shards, parents before children.
	Shards(ctx context.Context, table string) ([]Shard, error)
	// Read returns up to limit records of a shard with positions above after, in
	// order. ErrTrimmed says that some above after are gone. The zero position is that
	// before the first record, or, where Horizon answers zero, before the oldest one left.
	Read(ctx context.Context, table, shard string, after events.Position, limit int) (Records, error)
	// Trim says that nothing will read the shard's records up to the position again. The
	// store may delete them, or keep them as long as it likes.
	Trim(ctx context.Context, table, shard string, upTo events.Position) error
	// Changed returns a channel that is closed when the table's stream has more to read,
	// or the store is closed. Call it, then Read to the end, then wait: nothing is
	// missed. A store that cannot tell returns nil, which is never ready: a caller looks
	// again from time to time in any case.
	Changed(table string) (<-chan struct{}, error)
	// Tip tells how far the streams have come. It does no I/O.
	Tip() Tip
}

// Prepare is told of writes before they happen. It may add to their conditions, and
// nothing else; its error stops what would have happened.
type Prepare func(ctx context.Context, ws []Write) error

// Store is what every driver is, whole: no user of a store asks what else it can do.
// A driver that has nothing to say to a method answers with the zero value, as the
// method says. All methods may be called from many goroutines. A call after Close, or
// with a context that has ended, does nothing and answers ErrClosed or the context's error.
type Store interface {
	Source
	// Get reads rows by key, strongly; the answer is as long as refs, nil where
	// there is no row. A key that no row can have, because it is empty or too long, is
	// the key of no row: other writers' values lead to such keys.
	Get(ctx context.Context, refs []Ref) ([]value.Item, error)
	// Query reads a page. On the table itself the read is strong.
	Query(ctx context.Context, q Query) (Page, error)
	// Write does each write on its own and answers for each, in order. The error
	// is for what no Outcome can say: then each may or may not have happened.
	Write(ctx context.Context, ws []Write) ([]Outcome, error)
	// Transact does all or nothing; a key may occur once. The error wraps
	// ErrCondition, ErrRefused or ErrConflict when nothing happened.
	Transact(ctx context.Context, ws []Write) error
	// Horizon returns a position after which a shard still has all its records: what to
	// Read after when all that is left is wanted. Below one that is not zero, Read
	// answers ErrTrimmed. A store whose Read takes the zero position for the oldest
	// record answers zero.
	Horizon(ctx context.Context, table, shard string) (events.Position, error)
	// Streams returns the labels of those streams of a table that can be read, the
	// latest last; each sorts after those before it. What was written between two of
	// them is in none. From this call on the labels in met are among them, for as long as
	// those streams can be read. A store whose tables have one stream for ever returns
	// none.
	Streams(ctx context.Context, table string, met ...string) (labels []string, err error)
	// Sweep deletes up to limit rows whose TTL had expired at now, and returns how many;
	// their stream records say Expired. Each is deleted only if it is still expired at that
	// moment. Where prepare is not nil, it is called with the removals that come next,
	// before they are written. A crash leaves some deleted. A store that deletes such rows
	// by itself, as DynamoDB, deletes none here.
	Sweep(ctx context.Context, now time.Time, limit int, prepare Prepare) (removed int, err error)
	// Sync returns when all that was acknowledged survives a crash.
	Sync(ctx context.Context) error
	// Close ends the store; everything acknowledged is then durable. A second Close does
	// nothing.
	Close() error
}

// Deployed is what was found or made of a table.
type Deployed struct {
	Table   string
	ID      string // a table made again under the name has another
	Created bool
	Differs []string // what an existing table has otherwise; nothing of it was touched
}

// Deployer is a Store whose tables are made apart from opening it. The tables of any
// other store are there when it is open, and a replay may write into all of them.
type Deployer interface {
	Store
	// Deploy makes a table of the store that is not there, with its indexes, stream
	// and TTL, and waits until it is active. One that is there is compared and left as
	// it is, but for the TTL of a table that ours says to be (own): a crash may have
	// come between making it and switching its TTL on.
	Deploy(ctx context.Context, table string, own bool) (Deployed, error)
	// TableID is what tells a table from others of its name, "" where there is none.
	TableID(ctx context.Context, table string) (string, error)
}
