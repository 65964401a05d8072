package sim

import (
	"strings"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// checkOrder reports when weir writes something older over something newer: a lower version
// over its own version of a row, a ledger or a node of a set; or a
// lower position of a shard or of a group. A stale worker must change nothing.
func (w *world) checkOrder(who string, t *table, key store.Key, old, now value.Item) {
	name := refName(store.Ref{Table: t.Name, Key: key})
	if who == "app" || who == "ttl" {
		w.foreign[name] = true
		return
	}
	if w.foreign[""] || old == nil || now == nil {
		return
	}
	if t.Name != owntable.TableName {
		if wentDown(old, now, owntable.Version) && !w.foreign[name] {
			w.addFailure(Reordered, "version: %s made %s go back from %s to %s", who, name, plainText(old), plainText(now))
		}
		w.foreign[name] = false
		return
	}
	switch owntable.Kind(key.Partition.Text()) {
	case owntable.KindLedger, owntable.KindSet, owntable.KindCheckpoint, owntable.KindTombstone, owntable.KindFollow, owntable.KindFact:
		for _, a := range old {
			if (a.Name == owntable.Count || a.Name == owntable.Position || strings.HasPrefix(a.Name, owntable.PositionOf(""))) && now.Has(a.Name) && wentDown(old, now, a.Name) {
				w.addFailure(Reordered, "position: %s made %s go back from %s to %s", who, name, plainText(old), plainText(now))
			}
		}
	}
}

// wentDown reports whether an attribute's number or bytes went down.
func wentDown(old, now value.Item, name string) bool {
	a, b := old.Get(name), now.Get(name)
	return a.Kind() == b.Kind() && (a.Kind() == value.Number || a.Kind() == value.Binary) && value.Compare(b, a) < 0
}
