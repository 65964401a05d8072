package sim

import (
	"strings"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// backwards reports when weir writes something older over something newer: a lower version
// over its own version of a row, a ledger or a node of a set; or a
// lower position of a shard or of a group. A stale worker must change nothing.
func (w *world) backwards(who string, t *table, key store.Key, old, now value.Item) {
	name := refName(store.Ref{Table: t.Name, Key: key})
	if who == "app" || who == "ttl" {
		w.foreign[name] = true
		return
	}
	if w.foreign[""] || old == nil || now == nil {
		return
	}
	if t.Name != owntable.TableName {
		if lower(old, now, owntable.Version) && !w.foreign[name] {
			w.fail(Reordered, "version: %s made %s go back from %s to %s", who, name, plain(old), plain(now))
		}
		w.foreign[name] = false
		return
	}
	switch owntable.Kind(key.Partition.Text()) {
	case owntable.KindLedger, owntable.KindSet, owntable.KindCheckpoint, owntable.KindTombstone, owntable.KindFollow, owntable.KindFact:
		for _, a := range old {
			if (a.Name == owntable.Count || a.Name == owntable.Position || strings.HasPrefix(a.Name, owntable.PositionOf(""))) && now.Has(a.Name) && lower(old, now, a.Name) {
				w.fail(Reordered, "position: %s made %s go back from %s to %s", who, name, plain(old), plain(now))
			}
		}
	}
}

// lower reports whether an attribute's number or bytes went down.
func lower(old, now value.Item, name string) bool {
	a, b := old.Get(name), now.Get(name)
	return a.Kind() == b.Kind() && (a.Kind() == value.Number || a.Kind() == value.Binary) && value.Compare(b, a) < 0
}
