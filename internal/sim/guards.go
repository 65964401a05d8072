package sim

import (
	"strings"

	"weir/internal/events"
	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/value"
)

// checkWrites fails if a single write of weir does something that it may never do, whatever else is in progress. A write
// that breaks a rule is a mistake even if a later write corrects it.
func (w *world) checkWrites(who string, t *table, key store.Key, old, now value.Item) {
	name := refName(store.Ref{Table: t.Name, Key: key})
	if t.Name == owntable.TableName && owntable.Kind(key.Partition.Text()) == owntable.KindTombstone {
		w.buried[name] = w.base.writes
	}
	if who == "app" || who == "ttl" {
		return
	}
	if t.Name != owntable.TableName {
		w.checkTombstone(who, t, key, old, now)
		return
	}
	w.noteForgotten(old, now)
	switch kind := owntable.Kind(key.Partition.Text()); kind {
	case owntable.KindCheckpoint:
		w.checkLineage(who, key, now)
	case owntable.KindSubscribers:
		w.noteCrossings(key, old, now)
		w.app.noteMoment(key)
	}
}

// checkTombstone checks copies. A copy may be deleted only under a tombstone that is at least as
// new. What was buried before a worker read its records must not be made by that worker
// again.
func (w *world) checkTombstone(who string, t *table, key store.Key, old, now value.Item) {
	row := old
	if row == nil {
		row = now
	}
	e := w.model.Table(t.Name).Classify(row)
	if (old == nil) == (now == nil) || e == nil || !e.Derived || e.SetOf() != nil || isHistory(e) || row.Get(owntable.Version).Kind() != value.Binary {
		return
	}
	tomb := owntable.Tombstone(store.Ref{Table: t.Name, Key: key})
	at := events.PositionFrom(w.base.tables[owntable.TableName].get(tomb.Key).Get(owntable.Position))
	newer := at.Compare(events.PositionFrom(row.Get(owntable.Version))) >= 0
	name := refName(store.Ref{Table: t.Name, Key: key})
	if now == nil && !newer {
		w.addFailure(Lost, "copy: %s removed %s, %s, and there is no tombstone as new as it", who, name, plainText(old))
	}
	if old == nil && newer && w.buried[refName(tomb)] <= w.base.began {
		w.addFailure(Doubled, "copy: %s made %s again, %s, which had been buried before it began", who, name, plainText(now))
	}
}

// noteForgotten notes that the position of a shard left a row.
func (w *world) noteForgotten(old, now value.Item) {
	if w.mapping == nil || now == nil {
		return
	}
	for _, shardKey := range leftShards(old, now) {
		w.mapping.left = shardKey
		w.counted["positions that leave a row"]++
		if w.mapping.isOpen(shardKey) {
			w.counted["positions of open shards that leave a row"]++
		}
	}
}

// leftShards are the short keys of the shards whose positions a row had and has no longer.
func leftShards(old, now value.Item) (shardKeys []string) {
	for _, a := range old {
		if shardKey, is := strings.CutPrefix(a.Name, owntable.PositionOf("")); is && !now.Has(a.Name) {
			shardKeys = append(shardKeys, shardKey)
		}
	}
	return shardKeys
}

// checkLineage checks that no process moves on in a shard before its parent is done.
func (w *world) checkLineage(who string, key store.Key, now value.Item) {
	is := w.decodeCheckpoint(now)
	name, id := is.Table, is.Shard
	if is.At.IsZero() {
		return
	}
	t := w.base.tables[name]
	for _, s := range t.shards {
		if s.ID != id || s.Parent == "" {
			continue
		}
		for _, p := range t.shards {
			if p.ID != s.Parent || w.mapping != nil && w.checkpointRow(t, p) == nil { // the checkpoint of a function has expired
				continue
			}
			if !p.Closed || !w.isPassed(t, p) {
				w.addFailure(Reordered, "lineage: %s moved on in shard %s of %s before its parent %s was done", who, id, name, p.ID)
			}
		}
	}
}

// appliedPosition is how far a shard is applied.
func (w *world) appliedPosition(t *table, s *shard) events.Position {
	return w.decodeCheckpoint(w.checkpointRow(t, s)).At
}

// decodeCheckpoint decodes a checkpoint; it is the zero row if there is none.
func (w *world) decodeCheckpoint(row value.Item) owntable.CheckpointRow {
	is, err := owntable.DecodeCheckpoint(row)
	if err != nil {
		w.addFailure(Lost, "checkpoint: %v", err)
	}
	return is
}

// checkpointRow is the row with the position in a shard, or the last such row if the
// shard was retired.
func (w *world) checkpointRow(t *table, s *shard) value.Item {
	key := owntable.Checkpoint(w.model.Name, t.Name, s.ID).Key
	if row := w.base.tables[owntable.TableName].get(key); row != nil {
		return row
	}
	return w.retired[key.Partition.Text()+"|"+key.Sort.Text()]
}

// trimShard expires records, which must be applied.
func (w *world) trimShard(who, name, id string, upTo events.Position) {
	t := w.base.tables[name]
	for _, s := range t.shards {
		if s.ID != id {
			continue
		}
		if at := w.appliedPosition(t, s); at.Compare(upTo) < 0 {
			w.addFailure(Lost, "trim: %s gave up shard %s of %s up to %s, which is applied up to %s", who, id, name, upTo, at)
		}
		if w.trims != nil { // this stream expires records by itself
			return
		}
		if was := s.trimmed; w.base.keep {
			w.base.undo = append(w.base.undo, func() { s.trimmed = was })
		}
		for s.trimmed < len(s.records) && s.records[s.trimmed].Position.Compare(upTo) <= 0 {
			s.trimmed++
		}
	}
}
