package owntable

import (
	"strings"

	"weir/internal/events"
	"weir/internal/store"
	"weir/internal/value"
)

// The rows of set|MODEL|ROW are the nodes of the tree behind a set (package set), one for
// each path. Consumers of the members' streams write a node whole, on condition that its
// version is still the one that was read; a split or a join writes all its nodes and the
// rows that show them in one transaction. A node has at most a few KB.
const (
	nodeVersion = Count
	nodeInner   = "i"
	nodeCounts  = "m"
	nodeBelow   = "/" // p:SHARD/PATH is the position of only the members below PATH
	nodePruned  = Pruned
)

// NodeRow is the content of a node.
type NodeRow struct {
	Path    string
	Version value.Value            // Missing if the row does not exist yet
	Inner   bool                   // the members are in the nodes below
	Counts  map[string]value.Value // for each member, how many rows contribute it; never 0
	// Seen holds for each shard the positions up to which steps are counted, by the path
	// of the members that a position is for.
	Seen map[string]map[string]events.Position
	// Pruned says that positions of shards were removed: where one is missing, the shard's
	// frontier, read after the node, says which records are counted.
	Pruned bool
	// Ends is when TTL may delete the node, if it is the only one and has no members.
	Ends value.Value
}

// NodeFrom decodes a node's row. A nil row gives a leaf without members.
func NodeFrom(path string, row value.Item) NodeRow {
	n := NodeRow{Path: path, Version: row.Get(nodeVersion), Inner: row.Has(nodeInner), Pruned: row.Has(nodePruned), Counts: map[string]value.Value{}, Seen: map[string]map[string]events.Position{}}
	for _, a := range row.Get(nodeCounts).Item() {
		if a.Value.Kind() == value.Number { // else another writer wrote there
			n.Counts[a.Name] = a.Value
		}
	}
	for _, a := range row {
		if shardKey, ok := shardOfPosition(a.Name); ok {
			shardKey, at, below := strings.Cut(shardKey, nodeBelow)
			if !below {
				at = path
			}
			n.Saw(shardKey, at, events.PositionFrom(a.Value))
		}
	}
	return n
}

// Saw sets the position up to which a shard's steps are counted for the members below a
// path.
func (n *NodeRow) Saw(shardKey, path string, p events.Position) {
	if p.IsZero() {
		return
	}
	if n.Seen[shardKey] == nil {
		n.Seen[shardKey] = map[string]events.Position{}
	}
	n.Seen[shardKey][path] = p
}

// Put stores the node, on condition that its row still has the version before; Missing
// means that the row does not exist.
func (n *NodeRow) Put(at store.Ref, before value.Value) store.Write {
	return store.Write{Ref: at, Put: n.encodeNode(at), If: unchangedCondition(before)}
}

// DropNode deletes a node, on condition that it still has this version.
func DropNode(at store.Ref, version value.Value) store.Write {
	return store.Write{Ref: at, Delete: true, If: unchangedCondition(version)}
}

// unchangedCondition holds while a node has the version that was read; a missing version stands for a node
// that did not exist.
func unchangedCondition(version value.Value) store.Cond {
	if version.IsMissing() {
		return NotThere()
	}
	return store.Cond{{{Attr: nodeVersion, Is: store.Eq, Value: version}}}
}

// encodeNode is the node as it is stored. An inner node has no counts. An empty root expires when
// Ends says so; any other node stays until it is written again.
func (n *NodeRow) encodeNode(at store.Ref) value.Item {
	attrs := append(RefItem(at), newAttr(nodeVersion, n.Version))
	if n.Inner {
		return value.NewItem(append(attrs, newAttr(nodeInner, value.OfBool(true)))...)
	}
	counts := make([]value.Attr, 0, len(n.Counts))
	for m, c := range n.Counts {
		counts = append(counts, newAttr(m, c))
	}
	attrs = append(attrs, newAttr(nodeCounts, value.OfMap(value.NewItem(counts...))))
	if n.Path == "" && len(counts) == 0 && !n.Ends.IsMissing() {
		attrs = append(attrs, newAttr(Expiry, n.Ends))
	}
	if n.Pruned {
		attrs = append(attrs, newAttr(nodePruned, value.OfInt(1)))
	}
	for shardKey, at := range n.Seen {
		for path, p := range at {
			name := PositionOf(shardKey)
			if path != n.Path {
				name += nodeBelow + path
			}
			attrs = append(attrs, newAttr(name, p.Value()))
		}
	}
	return value.NewItem(attrs...)
}

// Node refers to a node of the tree behind the set whose first row is root.
func Node(model string, root store.Ref, path string) store.Ref {
	return Ref(Nodes(model)+RowText(root), path)
}

// PathOf returns the path of the node that a row of the own table holds.
func PathOf(row value.Item) string {
	if path := row.Get(Sort).Text(); path != emptySort {
		return path
	}
	return ""
}

// Nodes returns the prefix of the partition keys of a model's sets.
func Nodes(model string) string { return "set|" + model + "|" }
