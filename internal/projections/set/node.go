package set

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/value"
)

// Node is a row of our own table that keeps a part of a set. A leaf holds the members
// whose hash begins with its path. An inner node holds no members: they are in the
// sixteen nodes whose paths are one digit longer. Every set begins with the node whose
// path is "", and most sets never need another.
//
// For each shard, a leaf also carries the position up to which it
// has counted. Position and counts are in one row and change in one write, so each step
// counts once, however often it is delivered. Leaves that are joined into one may have
// reached different positions of a shard. The new leaf then keeps one position for each
// path, until the next step from that shard.
type Node struct{ owntable.NodeRow }

// The sizes of leaves. A member has at most 1 KB, so a leaf is a row of a few KB. A leaf
// that exceeds its limits is split at the next write. Sixteen leaves are joined into one
// when together they are small.
const (
	leafMembers = 64
	leafBytes   = 2 << 10 // of its members together
	fewMembers  = leafMembers / 2
	// Sparse is the number of members at or below which it is worth checking whether a
	// leaf and its siblings can be joined. If all of them are sparse, they can.
	Sparse = fewMembers / Fan
	// Fan is the number of nodes directly below an inner node.
	Fan = 16
)

// Member is a step for one member of a set.
type Member struct {
	Change   int // index into the batch
	Value    string
	Hash     string // hexadecimal
	Position events.Position
	Amount   value.Value
}

// splitMembers splits a target's steps by member. The result is in stream order.
func splitMembers(t *projections.Target) []Member {
	begins := owntable.Values(t.Entity.SetOf().Attr)
	var out []Member
	for _, s := range t.Steps {
		for _, a := range s.Adds {
			v := strings.TrimPrefix(a.Field, begins)
			out = append(out, Member{s.Change, v, MemberHash(v), s.Position, a.Amount})
		}
	}
	return out
}

// MemberHash returns the hash that decides which leaf a member belongs to.
func MemberHash(member string) string {
	sum := sha256.Sum256([]byte(member))
	return hex.EncodeToString(sum[:])
}

// PathsBelow returns the paths of the nodes directly below an inner node, in order.
func PathsBelow(path string) []string {
	out := make([]string, Fan)
	for i := range out {
		out[i] = path + "0123456789abcdef"[i:i+1]
	}
	return out
}

// NodeFrom decodes a node's row. A nil row gives a leaf without members.
func NodeFrom(path string, row value.Item) *Node { return &Node{owntable.NodeFrom(path, row)} }

// memberPosition returns the position up to which the leaf has counted the shard's steps for a
// member.
func (n *Node) memberPosition(shardKey, hash string) events.Position {
	var newest events.Position
	for path, p := range n.Seen[shardKey] {
		if strings.HasPrefix(hash, path) && p.Compare(newest) > 0 {
			newest = p
		}
	}
	return newest
}

// AsksFrontier reports whether the leaf lost the position by which TakeSteps would recognize some of the
// steps: Take then needs the frontier of the shard, read after the leaf.
func (n *Node) AsksFrontier(shardKey string, steps []Member) bool {
	return n.Pruned && !owntable.IsUnlogged(shardKey) && slices.ContainsFunc(steps, func(s Member) bool { return n.memberPosition(shardKey, s.Hash).IsZero() })
}

// TakeSteps counts those steps of a shard that the leaf has not counted yet, and reports
// whether there were any. No step up to the frontier counts. All steps must belong to this leaf. The caller must pass every
// step of the shard for this leaf up to the last of them that is still uncounted: Take
// moves the position past them all. After an error the node must be discarded.
func (n *Node) TakeSteps(shardKey string, steps []Member, frontier events.Position) (changed bool, err error) {
	for _, s := range steps {
		if s.Position.Compare(frontier) <= 0 || s.Position.Compare(n.memberPosition(shardKey, s.Hash)) <= 0 {
			continue
		}
		changed = true
		if err := n.AddStep(s); err != nil {
			return false, err
		}
	}
	if changed {
		last := steps[len(steps)-1].Position
		for path, p := range n.Seen[shardKey] {
			if p.Compare(last) <= 0 {
				delete(n.Seen[shardKey], path)
			}
		}
		n.Saw(shardKey, n.Path, last)
	}
	return changed, nil
}

// AddStep counts a step without checking whether it was counted before.
// A member that no row has any more leaves the node.
func (n *Node) AddStep(s Member) error {
	sum, err := value.AddNumbers(n.Counts[s.Value], s.Amount)
	switch {
	case err != nil:
		return err
	case sum.Sign() == 0:
		delete(n.Counts, s.Value)
	default:
		n.Counts[s.Value] = sum
	}
	return nil
}

// Positions returns the highest position of each shard that the leaf has.
func (n *Node) Positions() (out []owntable.Applied) {
	for _, key := range slices.Sorted(maps.Keys(n.Seen)) {
		if owntable.IsUnlogged(key) {
			continue
		}
		is := owntable.Applied{Key: key}
		for _, p := range n.Seen[key] {
			if p.Compare(is.At) > 0 {
				is.At = p
			}
		}
		out = append(out, is)
	}
	return out
}

// Forget removes the redundant positions of a shard.
func (n *Node) Forget(shardKey string) {
	delete(n.Seen, shardKey)
	n.Pruned = true
}

// ShownMembers returns the members that at least one row contributes, as rows show them. It
// returns Missing if there are none.
func (n *Node) ShownMembers(set *model.Tally) value.Value {
	var members []string
	for m, c := range n.Counts {
		if c.Sign() > 0 {
			members = append(members, m)
		}
	}
	return ShownValue(set, members)
}

// ShownValue returns different members as one row shows them, Missing if it shows none. A set of numbers
// shows nothing else.
func ShownValue(set *model.Tally, members []string) value.Value {
	kind := ValueKind(set)
	var elems []value.Attr
	for _, m := range members {
		v := value.OfString(m)
		if kind == value.NumberSet {
			n, err := value.ParseNumber(m)
			if err != nil || n.Text() != m {
				continue
			}
			v = n
		}
		elems = append(elems, value.Attr{Value: v})
	}
	if len(elems) == 0 {
		return value.Value{}
	}
	v, _ := value.OfElements(kind, elems)
	return v
}

// ValueKind returns the kind of a set: a number set if the fields that it is made of are
// declared as numbers, else a string set.
func ValueKind(set *model.Tally) value.Kind {
	if set.Numbers() {
		return value.NumberSet
	}
	return value.StringSet
}

// IsFull reports whether the leaf must be split.
func (n *Node) IsFull() bool {
	size := 0
	for m := range n.Counts {
		size += len(m)
	}
	return len(n.Counts) > 1 && (len(n.Counts) > leafMembers || size > leafBytes)
}

// SplitLeaf turns the leaf into an inner node and returns the sixteen nodes below it, with
// its members and positions. All sixteen exist from then on, so none of them can count a
// step that this leaf has counted.
func (n *Node) SplitLeaf() []*Node {
	below := make([]*Node, Fan)
	for i, path := range PathsBelow(n.Path) {
		c := NodeFrom(path, nil)
		c.Version, c.Pruned = n.Version, n.Pruned
		for shardKey, at := range n.Seen {
			c.Saw(shardKey, path, n.memberPosition(shardKey, path))
			for deeper, p := range at {
				if strings.HasPrefix(deeper, path) && p.Compare(c.memberPosition(shardKey, path)) > 0 {
					c.Saw(shardKey, deeper, p)
				}
			}
		}
		below[i] = c
	}
	for m, count := range n.Counts {
		digit := MemberHash(m)[len(n.Path)]
		below[strings.IndexByte("0123456789abcdef", digit)].Counts[m] = count
	}
	n.Inner, n.Counts, n.Seen = true, nil, nil
	return below
}

// FewEnough reports whether the leaves are small enough to be joined into one.
// It is false if one of them is split, or was never written.
func FewEnough(leaves []*Node) bool {
	members, size, seen := 0, 0, 0
	for _, n := range leaves {
		if n.Inner || n.Version.IsMissing() {
			return false
		}
		members += len(n.Counts)
		for m := range n.Counts {
			size += len(m)
		}
		for _, at := range n.Seen {
			seen += len(at)
		}
	}
	return members <= fewMembers && size <= leafBytes/2 && seen <= maxSeen
}

// maxSeen is the largest number of positions that a joined leaf may carry.
const maxSeen = 8 * Fan

// JoinLeaves turns an inner node into a leaf with all members of the leaves below it. If those
// have reached different positions of a shard, the new leaf keeps them apart by path.
func (n *Node) JoinLeaves(below []*Node) {
	n.Inner, n.Counts, n.Seen = false, map[string]value.Value{}, map[string]map[string]events.Position{}
	for _, c := range below {
		if value.Compare(c.Version, n.Version) > 0 {
			n.Version = c.Version
		}
		n.Pruned = n.Pruned || c.Pruned
		for m, count := range c.Counts {
			n.Counts[m] = count
		}
		for shardKey := range c.Seen {
			n.Seen[shardKey] = nil
		}
	}
	for shardKey := range n.Seen {
		least := slices.MinFunc(below, func(a, b *Node) int { return a.basePosition(shardKey).Compare(b.basePosition(shardKey)) }).basePosition(shardKey)
		n.Saw(shardKey, n.Path, least)
		for _, c := range below {
			for path, p := range c.Seen[shardKey] {
				if p.Compare(least) > 0 {
					n.Saw(shardKey, path, p)
				}
			}
		}
	}
}

// basePosition returns the shard's position that holds for all members of the leaf.
func (n *Node) basePosition(shardKey string) events.Position { return n.Seen[shardKey][n.Path] }
