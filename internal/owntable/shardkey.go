package owntable

import (
	"slices"
	"strings"

	"weir/internal/value"
)

// Unlogged is the key of changes that are applied once and come from no shard, and forget takes
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

const unlogged = "0" // no shard has this key

// shardKeyBytes is the length of a short shard key.
const shardKeyBytes = 12

// ShardKey returns the short key of a shard: 12 characters of a hash, 72 bits, so that two
// shards of a table never share one in practice.
func ShardKey(table, shard string) string { return Hash(ShardName(table, shard))[:shardKeyBytes] }

// ShardName names a shard in one text.
func ShardName(table, shard string) string { return table + "|" + shard }
