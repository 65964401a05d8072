// Package store is the contract of the store of rows. Every driver keeps it. It is in
// prose and code here, and as a test suite in storetest. The embedded driver, the
// DynamoDB driver and the simulator's store pass the suite.
//
// The contract is only as large as its users need: conditional writes of one row,
// all-or-nothing writes of a few, strong reads, key queries, and each table's stream.
// This is the part of DynamoDB that exactly-once bookkeeping needs, without the
// expression language. Store is the whole interface. There are no optional parts behind
// a type assertion, so a wrapper that embeds a Store loses nothing.
//
// The duties of every driver:
//
//   - Atomicity. One Write is atomic: its condition and effect, its index entries
//     and its stream record happen together or not at all. A Transact is atomic even
//     across separate reads: a reader that sees one row's new value sees the others'
//     new values, or later ones. Two Writes of one Write call are not atomic together.
//   - Order. Writes of one call to one key happen in the order given; there is no order
//     between keys. Each change of a row appears in its table's stream exactly once, and
//     the changes of one row in the order in which they happened. A write that changes
//     nothing leaves no stream record.
//   - Arrival. An acknowledged change may be missing from its stream for a while. Tip
//     says when it can be read.
//   - Durability. An acknowledged write survives a crash of the process and of the machine
//     at the latest from the next Sync or Close on. Before that it may be lost, but only
//     together with everything that was written after it, in any table. So a row that a reader
//     of the stream writes back into the store never survives without the record that
//     caused it. Lost positions may be used again. Call Sync before passing data read here
//     to another system, such as an index or a caller.
//   - Retry. An error that is none of this package's says nothing about whether the
//     write happened. The caller sends it again: conditions make that safe. A driver
//     itself sends a call again only where that changes nothing, or where the caller
//     allows it (Write.Repeatable).
//   - Ownership. Slices of writes, references, conditions and operations passed in
//     belong to the driver until the call returns. Items and values never change,
//     so both sides may keep them and share their memory.
//   - Errors. An error that the caller can act on wraps one of this package's errors,
//     with the operation, table and key added once.
//
// Strings in keys are compared bytewise, numbers by value, binary bytewise.
package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"time"

	"weir/internal/events"
	"weir/internal/seq"
	"weir/internal/value"
)

// DynamoDB's limits. A driver enforces them before it changes anything.
const (
	MaxItemBytes      = 400 << 10 // an item, counted by value.Item.Size
	MaxPartitionBytes = 2048      // a partition key value
	MaxSortBytes      = 1024      // a sort key value
	MaxTransact       = 100       // writes in a transaction
	MaxPageBytes      = 1 << 20   // a page of a query, before filters
)

// The kinds of error. They differ in the caller's next step. A driver wraps them and
// adds the operation, table and key once.
var (
	// ErrCondition: the condition was false; nothing happened. Look at the row.
	ErrCondition = errors.New("the condition does not hold")
	// ErrRefused: this write can never succeed as it is (too large, a key attribute of
	// the wrong type, a number out of range). Store it as a dead letter.
	ErrRefused = errors.New("the write is refused")
	// ErrConflict: another transaction wrote the same row; nothing happened. Send it
	// again.
	ErrConflict = errors.New("the transaction met another")
	// ErrNoTable: no such table or index. The configuration is wrong.
	ErrNoTable = errors.New("no such table or index")
	// ErrTrimmed: the stream no longer has the records after the position: a gap.
	ErrTrimmed = errors.New("the stream was trimmed past this position")
	// ErrOwned: another process has the embedded directory open. The error's text names
	// it.
	ErrOwned = errors.New("the data directory is in use")
	// ErrLoading: a Load cannot do this.
	ErrLoading = errors.New("this cannot be done while rows are loaded")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("the store is closed")
)

// Wrap names the call that an error stopped, in the form of fmt.Errorf; it is nil if the error is.
func Wrap(err error, format string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(format+": %w", append(args, err)...)
}

// KeyType is the DynamoDB type of a key attribute: value.String, value.Number or
// value.Binary.
type KeyType = value.Kind

// KeyAttr names a key attribute and its type: string, number or binary, as DynamoDB allows.
// The zero KeyAttr means none.
type KeyAttr struct {
	Name string
	Type KeyType
}

// KeySchema is the key of a table or an index. Sort.Name is "" if there is no sort key.
type KeySchema struct {
	Partition, Sort KeyAttr
}

// Table describes a table as it must exist. Drivers never change a Table that they are
// given, and keep reading it: its owner must not change it either.
type Table struct {
	Name    string
	Key     KeySchema
	Indexes []Index
	TTL     string // the attribute with the expiry in epoch seconds, "" for none
	Stream  bool   // keeps a stream with both images
}

// Index is a secondary index. It has an entry for each row that has all of the index's
// key attributes, with the right types, and none for other rows. If a row to write has
// an index key attribute of the wrong type, or an empty string in one, the driver
// returns ErrRefused, as DynamoDB does.
type Index struct {
	Name     string
	Key      KeySchema
	Local    bool // shares the table's partition key
	KeysOnly bool // holds only the keys of the table and the index
}

// Index finds an index by name.
func (t *Table) Index(name string) *Index {
	return seq.At(t.Indexes, func(ix *Index) bool { return ix.Name == name })
}

// KeyAttrs returns the attributes of the keys of the table and its indexes, each once, the table's own first.
func (t *Table) KeyAttrs() (out []KeyAttr) {
	all := []KeyAttr{t.Key.Partition, t.Key.Sort}
	for _, ix := range t.Indexes {
		all = append(all, ix.Key.Partition, ix.Key.Sort)
	}
	for _, a := range all {
		if a.Name != "" && !slices.ContainsFunc(out, func(b KeyAttr) bool { return b.Name == a.Name }) {
			out = append(out, a)
		}
	}
	return out
}

// Key is the primary key of a row. Sort is Missing if the table has no sort key.
type Key struct {
	Partition, Sort value.Value
}

// KeyOf returns a row's key from its attributes; ok is false if an attribute is absent
// or of the wrong type.
func (t *Table) KeyOf(it value.Item) (k Key, ok bool) {
	k.Partition = it.Get(t.Key.Partition.Name)
	ok = k.Partition.Kind() == t.Key.Partition.Type
	if t.Key.Sort.Name != "" {
		k.Sort = it.Get(t.Key.Sort.Name)
		ok = ok && k.Sort.Kind() == t.Key.Sort.Type
	}
	return k, ok
}

// Item returns the key as attributes: one, or two if the table has a sort key.
func (t *Table) Item(k Key) value.Item {
	return value.NewItem(value.Attr{Name: t.Key.Partition.Name, Value: k.Partition}, value.Attr{Name: t.Key.Sort.Name, Value: k.Sort})
}

// Ref names a row of a table, whether the row exists or not.
type Ref struct {
	Table string
	Key   Key
}

// Comparison is how a Test compares an attribute.
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

// Test is one comparison of one top-level attribute of the row. Exists and Absent ignore
// Value.
type Test struct {
	Attr  string
	Is    Comparison
	Value value.Value
}

// Cond is a conjunction of disjunctions: it holds if each inner list has a Test that
// holds. The empty Cond always holds. A row that does not exist has no attributes. To
// test whether the row exists, test the partition key with Exists or Absent.
type Cond [][]Test

// OpKind is the operation of an Op.
type OpKind uint8

// The operations of an update, on top-level attributes other than the key.
const (
	Set    OpKind = iota // the attribute becomes Value
	Add                  // add Value to the number (From where absent; 0 without From)
	Remove               // remove the attribute
)

// Op is one step of an update; a Write names each attribute at most once. Remove ignores
// Value, and only Add uses From. An Add whose sum has more than 38 digits, or whose
// attribute is no number, makes the whole write refused (ErrRefused).
type Op struct {
	Kind OpKind
	// Attr is the name of a top-level attribute that is no part of the key.
	Attr  string
	Value value.Value
	From  value.Value
}

// Write is a conditional write of one row. Exactly one of Put, Ops, Delete and Check
// must be set. An update (Ops) of a row that does not exist makes the row, unless the
// condition forbids it; a delete of a row that does not exist succeeds.
type Write struct {
	Ref
	If  Cond
	Put value.Item // the whole row, key attributes included
	// Ops change single attributes; those that they do not name stay.
	Ops    []Op
	Delete bool
	Check  bool // in a Transact: only the condition

	// Return asks for the row after the write, in the Outcome. If the condition failed,
	// that is the row for which it failed. With any other error there is none.
	Return bool

	// Repeatable says that the write may happen twice, even with other writes in between,
	// and that the caller knows that ErrCondition may then come from this write's own
	// first time. A driver that lost the answer to such a write sends it again by itself,
	// so that the rest of the call need not wait.
	Repeatable bool

	// Origin, when set, is passed on in the stream record of this write, as its time
	// and origin position. A driver whose stream cannot carry it leaves it out.
	Origin *Origin
}

// Origin is when and where a replayed record was first written.
type Origin struct {
	Time     time.Time
	Position events.Position
	Expired  bool // TTL deleted the row
}

// Outcome is the result of one Write. Err is nil if the write happened, and wraps one
// of this package's errors if it did not.
type Outcome struct {
	Err error
	Row value.Item // with Return: the row now, nil if there is none
}

// Query asks for rows of one table or index, in key order. Continue after a page with the
// same Query and the page's Next in After; a Query that differs in anything else may skip
// rows or repeat them.
type Query struct {
	Table, Index string // Index "" is the table itself
	// Partition is the partition key's value. If it is Missing, the query is a scan: it
	// reads all partitions, in no particular order.
	Partition value.Value
	Sort      Range
	Reverse   bool
	Limit     int // the maximum of rows in a page; 0 is up to MaxPageBytes
	After     *Cursor
	// Segments divides a scan of a table into parts that can be read at the same time, and
	// Segment, from 0, is the part that is read. All rows of a partition are in one part,
	// which stays the same for a number of Segments. 0 Segments is one part.
	Segment, Segments int
}

// MaxSegments is the largest number of segments.
const MaxSegments = 1_000_000

// Range limits the sort key; the zero Range is everything. Prefix is for strings and
// binary. Set only one of Equal, Prefix and the bounds.
type Range struct {
	Equal  value.Value
	Prefix value.Value
	From   value.Value // inclusive
	Below  value.Value // exclusive
}

// Cursor is the position after a row. Key is the row's primary key. For a query on an
// index, Entry has the index's key values.
type Cursor struct {
	Key   Key
	Entry Key
}

// Page is part of a query's answer. Next is nil on the last page. A page may be empty
// and have a Next. Rows of an index are whole unless it is KeysOnly; on DynamoDB they
// may lag behind the table.
type Page struct {
	Rows []value.Item
	Next *Cursor
}

// Shard is a part of a table's stream. A closed shard gets no more records; its
// children's records come after its own.
type Shard struct {
	ID     string
	Parent string // "" for none
	Closed bool
}

// Records is a page of a shard. An empty page only means that there are no records now.
// End says that the shard is closed and has been read to its end. More says that the page
// was cut, so there may be more to read now: a page of few records may be one of many bytes.
type Records struct {
	Records []events.Record
	End     bool
	More    bool
}

// PageBytes is about how many bytes of images a page of a shard has at most, if it has more
// than one record.
const PageBytes = 4 << 20

// Tip is how far a store's streams have come at one moment. Take one Tip. Everything
// acknowledged before it can be read once a later Tip's Seen is not below the first
// one's Given, and the first one's Lag has passed without new records. A store that
// numbers all changes in one order has no Lag. A store that does not, such as DynamoDB,
// has zero positions and relies on Lag alone.
type Tip struct {
	// Seen is not below any change that can be read now, in any table. Every change
	// that can be read only later will be above it.
	Seen events.Position
	// Given is not below any change that is acknowledged by now.
	Given events.Position
	// Lag is how long after its acknowledgement a change may be missing from its
	// stream.
	Lag time.Duration
	// Ahead is how far the clock of this machine is ahead of the store's, as far as the
	// store's last answer tells: below 0 if it is behind. It is 0 for a store that has no
	// other clock.
	Ahead time.Duration
}

// Clock is the time by a store's clock, told by the clock of this machine. A row that is kept for a
// while, such as tombstones, is kept by it: a machine whose clock is wrong must
// neither make it expire early nor take it for expired.
func Clock(now func() time.Time, s Source) func() time.Time {
	return func() time.Time { return now().Add(-s.Tip().Ahead) }
}

// Source is where streams are read: a Store, or a reader between a store and its
// consumers. All methods may be called from many goroutines at the same time.
type Source interface {
	// Shards lists a table's shards, parents before children.
	Shards(ctx context.Context, table string) ([]Shard, error)
	// Read returns up to limit records of a shard with positions above after, in order, and
	// fewer if they have more than PageBytes.
	// It returns ErrTrimmed if some of the records above after are gone. The zero
	// position is the position before the shard's first record; or, if Horizon returns
	// zero, before the oldest record that is left.
	Read(ctx context.Context, table, shard string, after events.Position, limit int) (Records, error)
	// Trim says that nothing will read the shard's records up to the position again. The
	// store may delete them, or keep them as long as it likes.
	Trim(ctx context.Context, table, shard string, upTo events.Position) error
	// Changed returns a channel that is closed when the table's stream has more to
	// read, or the store is closed. Call Changed, then Read to the end, then wait: so
	// no record is missed. A store that cannot notify returns nil, which is never
	// ready. In any case, the caller should also Read from time to time.
	Changed(table string) (<-chan struct{}, error)
	// Tip returns how far the streams have come. It does no I/O.
	Tip() Tip
}

// Images says which images of a row the records of a stream have, in DynamoDB's words.
type Images string

// The kinds of streams that can derive something.
const (
	NewAndOldImages Images = "NEW_AND_OLD_IMAGES"
	NewImage        Images = "NEW_IMAGE"
	KeysOnlyImages  Images = "KEYS_ONLY"
)

// Has reports whether a stream with these images has all that is needed.
func (i Images) Has(need Images) bool {
	return i == need || i == NewAndOldImages || i != "" && need == KeysOnlyImages
}

// Identity tells a table and its stream from all others that had or get the same name.
type Identity struct {
	ID     string    // of the table; "" if there is no such table
	ARN    string    // of the table, "" in a store whose tables have none
	Stream string    // the label of the stream that is on, "" for none
	Images Images    // of that stream
	Made   time.Time // when the table was made, zero if the store does not know
	// Together reports that the stream that is on was made together with the table, so
	// that no row was written before it. It is false if that is not certain.
	Together bool
	// Whole reports that the stream still has every change since the table was made. It
	// is false if that is not certain.
	Whole bool
	// Region is where the table is, "" in a store without regions, and Replicas are the other
	// regions that it is replicated to and from, sorted, with commas between them.
	Region, Replicas string
	// Strong reports a global table with multi-region strong consistency.
	Strong bool
	// Rows and Bytes are approximately how many rows the table has and how large these are, for saying
	// the cost of work; 0 if the store does not know. They say nothing of which table this is.
	Rows, Bytes int64
}

// Getter is the part of a Store that GetRow needs.
type Getter interface {
	Get(ctx context.Context, refs []Ref) ([]value.Item, error)
}

// GetRow reads one row with strong consistency, nil if there is none. For several rows call
// Get once: a driver reads them together.
func GetRow(ctx context.Context, s Getter, ref Ref) (value.Item, error) {
	rows, err := s.Get(ctx, []Ref{ref})
	if err != nil {
		return nil, err
	}
	return rows[0], nil
}

// WriteRow does one write. It returns the row of its Outcome, if that has one, also with an error, which is that of the
// store or of the Outcome.
func WriteRow(ctx context.Context, s Store, w Write) (value.Item, error) {
	out, err := s.Write(ctx, []Write{w})
	if err != nil {
		return nil, err
	}
	return out[0].Row, out[0].Err
}

// Querier is the part of a Store that Pages needs.
type Querier interface {
	Query(ctx context.Context, q Query) (Page, error)
}

// Pages yields the rows that a query finds from q.After on, page by page. Pages may be of different
// moments. An error comes without rows and is the last.
func Pages(ctx context.Context, s Querier, q Query) iter.Seq2[[]value.Item, error] {
	return func(yield func([]value.Item, error) bool) {
		for {
			page, err := s.Query(ctx, q)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(page.Rows, nil) || page.Next == nil {
				return
			}
			q.After = page.Next
		}
	}
}

// EachRow yields the rows of Pages one by one: a page is read when its first row is asked for.
func EachRow(ctx context.Context, s Querier, q Query) iter.Seq2[value.Item, error] {
	return func(yield func(value.Item, error) bool) {
		for rows, err := range Pages(ctx, s, q) {
			if err != nil {
				yield(nil, err)
				return
			}
			for _, row := range rows {
				if !yield(row, nil) {
					return
				}
			}
		}
	}
}

// MaxRounds is how often something is read, or tried, again because another worker changed it
// meanwhile. Each time some worker makes progress, so the rounds end, unless rows are
// missing.
const MaxRounds = 100

// WriteAgain does writes whose conditions are expected to fail at times. It returns an outcome
// for each. Any error other than a failed condition or a refusal is that of the call. Each of
// the writes may happen twice (Write.Repeatable): the caller takes a failed
// condition as it takes it when it does the same writes again. A caller that must know whether
// its own write happened calls WriteOnce.
func WriteAgain(ctx context.Context, s Store, ws []Write) ([]Outcome, error) {
	for i := range ws {
		ws[i].Repeatable = true
	}
	return WriteOnce(ctx, s, ws)
}

// WriteOnce is WriteAgain for writes that must not happen twice. If the answer to one of them is
// lost, that is the error. Without writes it does no call.
func WriteOnce(ctx context.Context, s Store, ws []Write) ([]Outcome, error) {
	if len(ws) == 0 {
		return nil, nil
	}
	out, err := s.Write(ctx, ws)
	if err != nil {
		return nil, err
	}
	for i := range out {
		if e := out[i].Err; e != nil && !errors.Is(e, ErrCondition) && !errors.Is(e, ErrRefused) {
			return nil, e
		}
	}
	return out, nil
}

// Prepare is called with removals before they happen. It may add to their conditions, or put
// another removal of an expired row in the place of one. If it returns an error, none happens.
type Prepare func(ctx context.Context, ws []Write) error

// Store is the interface that every driver implements as a whole: no user of a store
// asks for more. A method that does not apply to a driver returns the zero value, as
// the method's comment says. All methods may be called from many goroutines at the same
// time. A call after Close, or with a context that has ended, does nothing and returns
// ErrClosed or the context's error.
type Store interface {
	Source
	// Get reads rows by key, with strong consistency. The result is as long as refs,
	// nil for a row that does not exist. A key that no row can have, because it is
	// empty or too long, is not an error: other writers' values lead to such keys, and
	// the result is nil.
	Get(ctx context.Context, refs []Ref) ([]value.Item, error)
	// Query reads a page. On the table itself the read is strongly consistent.
	Query(ctx context.Context, q Query) (Page, error)
	// Write executes each write by itself and returns an Outcome for each, in order. If
	// it returns an error, each write may have happened or not.
	Write(ctx context.Context, ws []Write) ([]Outcome, error)
	// Transact executes all writes or none. Each key may occur only once. If nothing
	// happened, the error wraps ErrCondition, ErrRefused or ErrConflict. After any
	// other error the transaction may have happened.
	Transact(ctx context.Context, ws []Write) error
	// Horizon returns a position after which a shard still has all its records. Read
	// after it to get everything that is left. If it is not zero, Read below it returns
	// ErrTrimmed. A store whose Read takes the zero position for the oldest record
	// returns zero.
	Horizon(ctx context.Context, table, shard string) (events.Position, error)
	// Streams returns the labels of a table's streams that can be read, the latest
	// last; labels sort in that order. A change between two streams is in
	// neither. Pass the labels that earlier calls returned in met: from then on they
	// are returned for as long as their streams can be read. A store whose tables have
	// only one stream returns none.
	Streams(ctx context.Context, table string, met ...string) (labels []string, err error)
	// Continues reports whether each position of one stream of a table is above all of an
	// earlier one, by their labels. It is false if that is not certain, as when the earlier one
	// can no longer be read. A store whose tables have only one order of positions returns true.
	Continues(ctx context.Context, table, earlier, label string) (bool, error)
	// Identity identifies a table and its stream, as they are now. Two tables that had
	// the same name at different times have different ids, and so have the tables of two
	// stores. A table that is known to the store but was not made has the zero Identity.
	Identity(ctx context.Context, table string) (Identity, error)
	// Sweep deletes up to limit rows whose TTL had expired at now, and returns how
	// many. Their stream records say Expired. Each row is deleted only if it is still
	// expired at that moment. prepare, if not nil, is called with the next removals
	// before they are written. A crash leaves some of the rows deleted. A store that
	// deletes expired rows by itself, such as DynamoDB, deletes none here.
	Sweep(ctx context.Context, now time.Time, limit int, prepare Prepare) (removed int, err error)
	// Load returns a Load for rows of some tables, and of tables without a stream. It is nil
	// if the store cannot load, or if a stream of the tables has or had a record, which
	// someone may follow.
	Load(ctx context.Context, o LoadOptions) (Load, error)
	// Sync returns once everything acknowledged survives a crash.
	Sync(ctx context.Context) error
	// Close ends the store. Everything acknowledged is then durable. A second Close
	// does nothing.
	Close() error
}

// LoadOptions are the options of a Load.
type LoadOptions struct {
	Tables []string // with streams
	// Refuse, if set, is asked before each write. Its error ends the call.
	Refuse func(Ref) error
	// Silent, if set, reports whether a write that changes a row is left out of the result of Take.
	Silent func(ref Ref, old, new value.Item) bool
	// Drop, if set, returns the rows about a row of a table without a stream that go.
	Drop func(row value.Item) value.Item
	// Memory is about how many bytes the Load may take for staged rows.
	Memory int
}

// Scratch is a file that is written at its end, and read anywhere. It has no name, and is gone
// when it is closed, or the process ends.
type Scratch interface {
	io.Writer
	io.ReaderAt
	io.Closer
}

// Load is a Store whose writes stay in memory until Land puts all of them on disk in one
// step. A crash loses all that has not landed, as a whole. Its writes leave no record in a
// stream: their records are given to the caller (Take). From the first Land on, Identity
// says that the tables' streams are not Whole.
//
// Until it is given up, no one else may write rows that the Load reads, or into tables with a
// stream, and it belongs to one goroutine. Query answers for a partition of a table without a
// stream, forwards. All other queries and sweeps would not see rows that have not landed, and are refused
// with ErrLoading; calls about streams are the store's. Close gives up rows that have not landed.
type Load interface {
	Store
	// Stage moves everything that was written to disk, beside the store, so that it takes no
	// memory. Until the next Land the Load shows those rows as they were before, so a caller must
	// not come to a staged row again. Of the tables with streams, rows must be staged in the order
	// of their names; else the error wraps ErrLoading. Writing goes on when Stage has returned, so its
	// error may come from the next Stage, or from Land.
	Stage(ctx context.Context) error
	// AppendName appends a row's name to b. Names sort as rows are staged.
	AppendName(b []byte, ref Ref) ([]byte, error)
	// Named returns the row that AppendName made a name of.
	Named(name []byte) (Ref, error)
	// Scratch returns an empty file.
	Scratch() (Scratch, error)
	// Free is how many bytes may still be written beside the store, 0 if that is not known.
	Free() int64
	// Take returns the stream records of the writes since the last Take, in their order.
	// Their positions ascend from behind all that the store has given. Once a window has landed, the
	// store, and every Load of it, gives greater ones only, so rows may carry them.
	Take() []events.Record
	// Fits returns why the store refuses a row, nil if it takes it. stored is the length of the
	// row's stored form (package value). Any goroutine may call it.
	Fits(ref Ref, row value.Item, stored int) error
	// Place puts a row whatever the present one is, or removes it if row is nil. It leaves no
	// record. The caller must have read the row since the last Stage or Land, if it exists.
	Place(ref Ref, row value.Item) error
	// Bytes is about how much memory is taken by rows that have not landed.
	Bytes() int
	// Land makes everything that was written, and staged, part of the store, durably, after the rows that
	// the store has acknowledged. After an error it is not known whether it landed: give up the Load
	// and the store.
	Land(ctx context.Context) error
}

// Deployed is a table that Deploy found or made.
type Deployed struct {
	Table   string
	ID      string // changes when the table is deleted and made again
	Created bool
	Differs []string // how an existing table differs; Deploy changed none of this
}

// Deployer is a Store whose tables are made separately from opening it. The tables of
// any other store exist once it is open, and a replay may write into all of them.
type Deployer interface {
	Store
	// Deploy makes a table of the store if it does not exist, with its indexes, stream
	// and TTL, and waits until it is active. An existing table is compared and left as
	// it is, with one exception: if own says that it is our own table, Deploy switches
	// its TTL on, because a crash may have come between making the table and switching
	// the TTL on.
	Deploy(ctx context.Context, table string, own bool) (Deployed, error)
}
