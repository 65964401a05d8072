package projections

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"strings"

	"weir/internal/book"
	"weir/internal/events"
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// Node is a row of our table that keeps a part of a set: a leaf with the members
// whose hash begins with its path, or an inner node, which says that they are in
// the sixteen nodes whose paths are one digit longer. The node with the path "" is
// where every set begins and most end.
//
// A leaf carries, for each lane, the position up to which its members are counted,
// in the same row and the same write as the counts: so a step counts once, however
// often it comes. Leaves that were gathered into one may have come to different
// positions; then the leaf has one for each path, until the lane's next step.
type Node struct {
	Path    string
	Version value.Value            // Missing: there is no such row yet
	Inner   bool                   // the members are below
	Counts  map[string]value.Value // of each member, how many rows say so; never 0
	seen    map[string]map[string]events.Position
}

// The sizes of leaves. A member is at most a kilobyte, so that a leaf is a row of
// a few; a leaf over its limits is split when something is written to it, and
// sixteen of them become one when together they are small.
const (
	leafMembers = 64
	leafBytes   = 2 << 10 // of its members
	fewMembers  = leafMembers / 2
	// Sparse is how many members a leaf has that makes it worth looking whether it
	// and its siblings are small enough: they are as soon as all of them are sparse.
	Sparse = fewMembers / Fan
	// Fan is how many nodes an inner node has below it.
	Fan = 16
)

// Member is a step on one member of a set.
type Member struct {
	Change   int // index into the batch
	Value    string
	Hash     string // in hexadecimal digits
	Position events.Position
	Amount   value.Value
}

// Members takes a target's steps apart by member, in the order of the stream.
func (t *Target) Members() []Member {
	begins := book.Values(t.Entity.SetOf().Attr)
	var out []Member
	for _, s := range t.Steps {
		for _, a := range s.Adds {
			v := strings.TrimPrefix(a.Field, begins)
			out = append(out, Member{s.Change, v, MemberHash(v), s.Position, a.Amount})
		}
	}
	return out
}

// MemberHash decides in which leaf a member is.
func MemberHash(member string) string {
	sum := sha256.Sum256([]byte(member))
	return hex.EncodeToString(sum[:])
}

// Below are the paths of the nodes below an inner one, in order.
func Below(path string) []string {
	out := make([]string, Fan)
	for i := range out {
		out[i] = path + "0123456789abcdef"[i:i+1]
	}
	return out
}

// Attributes of a node's row beside its version and the positions of lanes.
const (
	nodeInner  = "i"
	nodeCounts = "m"
	lanePath   = "/" // p:LANE/PATH is a position of the members below PATH alone
)

// NodeFrom reads a node's row; nil is no row, which is a leaf without members.
func NodeFrom(path string, row value.Item) *Node {
	n := &Node{Path: path, Version: row.Get(book.Count), Inner: row.Has(nodeInner), Counts: map[string]value.Value{}, seen: map[string]map[string]events.Position{}}
	for _, a := range row.Get(nodeCounts).Item() {
		if a.Value.Kind() == value.Number { // or somebody else wrote there
			n.Counts[a.Name] = a.Value
		}
	}
	for _, a := range row {
		if lane, ok := strings.CutPrefix(a.Name, book.Lane("")); ok {
			lane, at, below := strings.Cut(lane, lanePath)
			if !below {
				at = path
			}
			n.saw(lane, at, events.PositionFrom(a.Value))
		}
	}
	return n
}

func (n *Node) saw(lane, path string, p events.Position) {
	if p.IsZero() {
		return
	}
	if n.seen[lane] == nil {
		n.seen[lane] = map[string]events.Position{}
	}
	n.seen[lane][path] = p
}

// Row is the node as a row of our table under the key of ref.
func (n *Node) Row(ref store.Ref) value.Item {
	attrs := append(book.RefItem(ref), value.Attr{Name: book.Count, Value: n.Version})
	if n.Inner {
		return value.NewItem(append(attrs, value.Attr{Name: nodeInner, Value: value.OfBool(true)})...)
	}
	counts := make([]value.Attr, 0, len(n.Counts))
	for m, c := range n.Counts {
		counts = append(counts, value.Attr{Name: m, Value: c})
	}
	attrs = append(attrs, value.Attr{Name: nodeCounts, Value: value.OfMap(value.NewItem(counts...))})
	for lane, at := range n.seen {
		for path, p := range at {
			name := book.Lane(lane)
			if path != n.Path {
				name += lanePath + path
			}
			attrs = append(attrs, value.Attr{Name: name, Value: p.Value()})
		}
	}
	return value.NewItem(attrs...)
}

// position is up to where the lane's steps on a member are counted.
func (n *Node) position(lane, hash string) events.Position {
	var newest events.Position
	for path, p := range n.seen[lane] {
		if strings.HasPrefix(hash, path) && p.Compare(newest) > 0 {
			newest = p
		}
	}
	return newest
}

// Take counts the steps of a lane that the leaf has not counted, all of which must
// be for it, and reports whether there were any. No step of this lane that came
// before the last of them may be outstanding for this leaf.
func (n *Node) Take(lane string, steps []Member) (changed bool, err error) {
	for _, s := range steps {
		if s.Position.Compare(n.position(lane, s.Hash)) <= 0 {
			continue
		}
		changed = true
		if err := n.Add(s); err != nil {
			return false, err
		}
	}
	if changed {
		last := steps[len(steps)-1].Position
		for path, p := range n.seen[lane] {
			if p.Compare(last) <= 0 {
				delete(n.seen[lane], path)
			}
		}
		n.saw(lane, n.Path, last)
	}
	return changed, nil
}

// Add counts a step, whatever was counted before.
func (n *Node) Add(s Member) error {
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

// Lanes are those that the leaf has a position of.
func (n *Node) Lanes() []string { return slices.Sorted(maps.Keys(n.seen)) }

// Pass says that all steps of a lane up to a position are counted, or were never to
// be.
func (n *Node) Pass(lane string, p events.Position) {
	for path, q := range n.seen[lane] {
		if q.Compare(p) <= 0 {
			delete(n.seen[lane], path)
		}
	}
	if p.Compare(n.seen[lane][n.Path]) > 0 {
		n.saw(lane, n.Path, p)
	}
}

// Forget takes the positions of a lane out, of which nothing comes any more.
func (n *Node) Forget(lane string) { delete(n.seen, lane) }

// Shown are the members that some row says are in the set, as rows show them;
// Missing for none.
func (n *Node) Shown(set *model.Tally) value.Value {
	var elems []value.Attr
	for m, c := range n.Counts {
		if c.Sign() > 0 {
			elems = append(elems, value.Attr{Value: SetMember(set, m)})
		}
	}
	if len(elems) == 0 {
		return value.Value{}
	}
	v, _ := value.OfElements(SetKind(set), elems)
	return v
}

// SetKind is what kind of value a set is: of numbers where the field that it is of
// is declared to be one.
func SetKind(set *model.Tally) value.Kind {
	for _, s := range set.Sources {
		if s.Field.Type != model.TypeNumber || s.Field.Key != nil {
			return value.StringSet
		}
	}
	return value.NumberSet
}

// SetMember is a member as it stands in the set.
func SetMember(set *model.Tally, m string) value.Value {
	if SetKind(set) == value.NumberSet {
		if v, err := value.ParseNumber(m); err == nil {
			return v
		}
	}
	return value.OfString(m)
}

// Full reports whether the leaf is to be split.
func (n *Node) Full() bool {
	size := 0
	for m := range n.Counts {
		size += len(m)
	}
	return len(n.Counts) > 1 && (len(n.Counts) > leafMembers || size > leafBytes)
}

// Split makes the leaf an inner node. Its members and positions go to the nodes
// below, all of which are there from now on, so that none of them can count again
// what this one has counted.
func (n *Node) Split() []*Node {
	below := make([]*Node, Fan)
	for i, path := range Below(n.Path) {
		c := NodeFrom(path, nil)
		c.Version = n.Version
		for lane, at := range n.seen {
			c.saw(lane, path, n.position(lane, path))
			for deeper, p := range at {
				if strings.HasPrefix(deeper, path) && p.Compare(c.position(lane, path)) > 0 {
					c.saw(lane, deeper, p)
				}
			}
		}
		below[i] = c
	}
	for m, count := range n.Counts {
		digit := MemberHash(m)[len(n.Path)]
		below[strings.IndexByte("0123456789abcdef", digit)].Counts[m] = count
	}
	n.Inner, n.Counts, n.seen = true, nil, nil
	return below
}

// FewEnough reports whether the leaves are small enough to be one.
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
		for _, at := range n.seen {
			seen += len(at)
		}
	}
	return members <= fewMembers && size <= leafBytes/2 && seen <= maxSeen
}

// maxSeen bounds the positions that a leaf may carry.
const maxSeen = 8 * Fan

// Join makes an inner node the leaf that holds all members of the leaves below it.
// Where these have come to different positions of a lane it keeps them apart.
func (n *Node) Join(below []*Node) {
	n.Inner, n.Counts, n.seen = false, map[string]value.Value{}, map[string]map[string]events.Position{}
	for _, c := range below {
		if value.Compare(c.Version, n.Version) > 0 {
			n.Version = c.Version
		}
		for m, count := range c.Counts {
			n.Counts[m] = count
		}
		for lane := range c.seen {
			n.seen[lane] = nil
		}
	}
	for lane := range n.seen {
		least := slices.MinFunc(below, func(a, b *Node) int { return a.base(lane).Compare(b.base(lane)) }).base(lane)
		n.saw(lane, n.Path, least)
		for _, c := range below {
			for path, p := range c.seen[lane] {
				if p.Compare(least) > 0 {
					n.saw(lane, path, p)
				}
			}
		}
	}
}

// base is the position that holds for all members of the leaf.
func (n *Node) base(lane string) events.Position { return n.seen[lane][n.Path] }
