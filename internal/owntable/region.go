package owntable

import (
	"weir/internal/store"
	"weir/internal/value"
)

// RegionFence says which region derives from a replicated table, and how often that was another one. It is a row of the
// application's table, so that replication brings it to all regions: {PK: "weir.region", SK: "weir.region", "weir.region": "eu-west-1",
// "weir.count": 3}. The first program that derives from the table makes it, and only an operator hands it on (projector build
// --take-over). It is a row of no entity.
type RegionFence struct {
	Region string
	Count  int64
}

// Attributes of the fence.
const (
	fenceRegion = prefix + "region"
	fenceCount  = prefix + "count"
)

// fenceNumber is the key of the fence where keys are numbers: the least whole number of 38 digits.
const fenceNumber = "-99999999999999999999999999999999999999"

// RegionFenceOf refers to the fence of a table.
func RegionFenceOf(t *store.Table) store.Ref {
	key := func(a store.KeyAttr) (v value.Value) {
		switch {
		case a.Name == "":
		case a.Type == value.Number:
			v, _ = value.ParseNumber(fenceNumber)
		case a.Type == value.Binary:
			v = value.OfBinary(fenceRegion)
		default:
			v = value.OfString(fenceRegion)
		}
		return v
	}
	return store.Ref{Table: t.Name, Key: store.Key{Partition: key(t.Key.Partition), Sort: key(t.Key.Sort)}}
}

// IsRegionFence reports whether a row of the application's table is its fence. A row that follows a value in its attribute region
// has an attribute of the same name (FollowVersion), and another key.
func IsRegionFence(t *store.Table, row value.Item) bool {
	if !row.Has(fenceRegion) {
		return false
	}
	key := RegionFenceOf(t).Key
	return value.Equal(row.Get(t.Key.Partition.Name), key.Partition) && value.Equal(row.Get(t.Key.Sort.Name), key.Sort)
}

// RegionFenceFrom decodes a fence, zero for none.
func RegionFenceFrom(row value.Item) (f RegionFence) {
	f.Region = row.Get(fenceRegion).Text()
	f.Count, _ = row.Get(fenceCount).Int64()
	return f
}

// Becomes makes this region the one that derives, on condition that the fence is as it was read. A row of the application
// at its key stays.
func (f RegionFence) Becomes(at store.Ref, t *store.Table, region string) store.Write {
	is := store.Cond{{store.AsRead(t.Key.Partition.Name, value.Value{})}}
	if f.Region != "" {
		is = store.Cond{{store.AsRead(fenceRegion, value.OfString(f.Region))}, {store.AsRead(fenceCount, value.OfInt(f.Count))}}
	}
	return store.Write{Ref: at, If: is, Ops: []store.Op{store.Assign(fenceRegion, value.OfString(region)), store.Assign(fenceCount, value.OfInt(f.Count+1))}}
}
