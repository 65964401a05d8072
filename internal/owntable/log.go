package owntable

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"weir/internal/mergedlog"
	"weir/internal/store"
	"weir/internal/value"
)

// The row of log|MODEL|NUMBER is a merged log (package mergedlog): up to where its pending
// batch has records of each shard. The process that applies the log's shards writes it before
// the effects of each batch; nothing deletes it. There are as many as processes ran at one
// time, each of about 100 bytes, and 34 for each shard of the batch. A crash leaves a batch
// that is applied again.
const (
	logVersion = Count
	logBatch   = "b"
	logRanges  = "r" // absent if there are none
)

const logDo = "stop all processes, let projector repair put the sums right, and ask for help: without the row, what was applied in part is unknown"

// DecodeLog decodes the row of a merged log, nil if there is none. The error wraps ErrRow.
func DecodeLog(row value.Item) (l mergedlog.Log, err error) {
	if row == nil {
		return l, nil
	}
	if l.Version, err = whole(row, logVersion, 1, logDo); err != nil {
		return mergedlog.Log{}, err
	}
	if l.Batch, err = whole(row, logBatch, 0, logDo); err != nil {
		return mergedlog.Log{}, err
	}
	v := row.Get(logRanges)
	if v.IsMissing() {
		return l, nil
	}
	var ok bool
	if l.Ranges, ok = rangesFrom(v.Text()); !ok || v.Kind() != value.Binary {
		return mergedlog.Log{}, unreadable(row, logRanges, "a list of shards and positions", logDo)
	}
	return l, nil
}

// SaveLog stores the next content of a merged log, on condition that its version has not
// changed since it was read. The write returns the row.
func SaveLog(at store.Ref, was, next mergedlog.Log) store.Write {
	w := store.Write{Ref: at, Return: true, If: NotThere(), Put: value.NewItem(append(RefItem(at),
		attr(logVersion, value.OfInt(next.Version)), attr(logBatch, value.OfInt(next.Batch)))...)}
	if was.Version > 0 {
		w.If = store.Cond{equal(logVersion, was.Version)}
	}
	if len(next.Ranges) > 0 {
		w.Put = w.Put.With(attr(logRanges, value.OfBinary(rangesText(next.Ranges))))
	}
	return w
}

// rangesText encodes ranges, which are in the order of their names: of each name only what
// differs from the one before, of each position only what is behind leading zeros,
// and the number of records.
func rangesText(ranges []mergedlog.Range) string {
	var out []byte
	before := ""
	for _, r := range ranges {
		same := 0
		for same < min(len(before), len(r.Shard)) && before[same] == r.Shard[same] {
			same++
		}
		out = binary.AppendUvarint(out, uint64(same))
		out = binary.AppendUvarint(out, uint64(len(r.Shard)-same))
		out = append(out, r.Shard[same:]...)
		zeros := 0
		for zeros < len(r.To) && r.To[zeros] == 0 {
			zeros++
		}
		out = append(append(out, byte(len(r.To)-zeros)), r.To[zeros:]...)
		out = binary.AppendUvarint(out, uint64(r.Records))
		before = r.Shard
	}
	return string(out)
}

// rangesFrom decodes what rangesText returned. ok is false for anything else.
// Only the one text that rangesText gives for the ranges is taken, so two forms of the same ranges cannot differ in a condition.
func rangesFrom(text string) (out []mergedlog.Range, ok bool) {
	in, before := []byte(text), ""
	next := func(most int) (n int, ok bool) {
		u, size := binary.Uvarint(in)
		if size <= 0 || u > uint64(most) {
			return 0, false
		}
		in = in[size:]
		return int(u), true
	}
	for len(in) > 0 {
		same, ok := next(len(before))
		if !ok {
			return nil, false
		}
		more, ok := next(len(in))
		if !ok || more > len(in)-1 {
			return nil, false
		}
		r := mergedlog.Range{Shard: before[:same] + string(in[:more])}
		in = in[more:]
		size := int(in[0])
		if in = in[1:]; size > min(len(r.To), len(in)) {
			return nil, false
		}
		copy(r.To[len(r.To)-size:], in[:size])
		in, before = in[size:], r.Shard
		if r.Records, ok = next(1 << 30); !ok {
			return nil, false
		}
		out = append(out, r)
	}
	return out, rangesText(out) == text
}

// Log refers to the row of a merged log.
func Log(model string, number int64) store.Ref {
	return Ref("log|"+model+"|"+strconv.FormatInt(number, 10), "")
}

// LogKey is the key under which ledgers keep their position in a merged log, in the place of
// a short shard key, which is longer.
func LogKey(number int64) string { return strconv.FormatInt(number, 10) }

// Unlogged is the key of changes that are applied once and come again in no log, and what leaves
// out of a row how far it has counted of them. The counter of a list keeps that while it sends.
func Unlogged() (shardKey string, forget func(row value.Item) value.Item) {
	position, sending := PositionOf(unlogged), listFirst+unlogged
	drop := func(name string) bool { return name == position || strings.HasPrefix(name, position+nodeBelow) }
	return unlogged, func(row value.Item) value.Item {
		if !slices.ContainsFunc(row, func(a value.Attr) bool { return drop(a.Name) }) || row.Has(sending) {
			return row
		}
		return row.Filter(func(name string) bool { return !drop(name) })
	}
}

// IsUnlogged reports whether a key is that of Unlogged.
func IsUnlogged(shardKey string) bool { return shardKey == unlogged }

const unlogged = "0" // no log has this number

// IsLogKey reports whether a key is that of a merged log.
func IsLogKey(key string) bool { return len(key) < shardKeyBytes }

// shardKeyBytes is the length of a short shard key.
const shardKeyBytes = 12

// ShardKey returns the short key of a shard: 12 characters of a hash, 72 bits, so that two
// shards of a table never share one in practice.
func ShardKey(table, shard string) string { return Hash(ShardName(table, shard))[:shardKeyBytes] }

// ShardName names a shard in one text, which ShardOf splits.
func ShardName(table, shard string) string { return table + "|" + shard }

// JoinCheckpoint notes that a shard belongs to a merged log, on condition that its checkpoint
// has not changed since it was read. In a transaction with the log that it leaves, no batch of
// that log can have records of it from then on.
func (c CheckpointRow) JoinCheckpoint(at store.Ref, log int64) store.Write {
	was := value.Value{}
	if c.Log != 0 {
		was = value.OfInt(c.Log)
	}
	var fence value.Value
	if c.Fence != 0 {
		fence = value.OfInt(c.Fence)
	}
	return store.Write{
		Ref: at, If: store.Cond{{store.AsRead(checkLog, was)}, {unmoved(c.At)}, {store.AsRead(checkFence, fence)}},
		Ops: []store.Op{set(checkLog, value.OfInt(log))},
	}
}

// The rows of logs|MODEL are leases of merged logs: which process applies its shards as this
// log. Processes write them; nothing deletes them. There are as many as processes ran at one
// time, each of about 150 bytes.

// LogLease refers to the lease of a merged log.
func LogLease(model string, number int64) store.Ref {
	return Ref(LogLeases(model), fmt.Sprintf("%06d", number))
}

// LogLeases returns the partition key of the leases of a model's merged logs.
func LogLeases(model string) string { return "logs|" + model }

// LogOf returns the number of the log of which a row is the lease. The error wraps ErrRow.
func LogOf(row value.Item) (number int64, err error) {
	text := row.Get(Sort).Text()
	number, err = strconv.ParseInt(text, 10, 64)
	if err != nil || number < 1 || fmt.Sprintf("%06d", number) != text {
		return 0, unreadable(row, Sort, "the number of a log", leaseDo)
	}
	return number, nil
}
