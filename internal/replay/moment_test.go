package replay

import (
	"fmt"
	"slices"
	"testing"

	"weir/internal/soaktest"
)

// TestMoments gives a row all histories of up to four changes of one moment without sequence numbers, in one to three commands, in any
// order of commands, each command once or twice. The row is right in the end, or a gap stays. In their order they leave no gap, but where the
// row's changes lead back to where they begin and nothing is known before them.
func TestMoments(t *testing.T) {
	soaktest.Calm(t)
	images := []digest{{}, {1}, {2}}
	var paths func(path []int, do func(path []int))
	paths = func(path []int, do func(path []int)) {
		if len(path) > 1 {
			do(path)
		}
		for i := range images {
			if len(path) < 5 && (len(path) == 0 || path[len(path)-1] != i) {
				paths(append(slices.Clone(path), i), do)
			}
		}
	}
	n := 0
	paths(nil, func(path []int) {
		var all []link
		for i := range path[1:] {
			all = append(all, link{mark: mark{time: 9}, id: uint64(i) + 1, old: images[path[i]], new: images[path[i+1]]})
		}
		for cuts := range 1 << (len(all) - 1) {
			var commands [][]link
			for i, l := range all {
				if i == 0 || cuts&(1<<(i-1)) != 0 {
					commands = append(commands, nil)
				}
				c := &commands[len(commands)-1]
				if len(*c) > 0 {
					l.note = noteChain
				}
				*c = append(*c, l)
			}
			for _, before := range []bool{false, true} {
				for _, order := range orders(len(commands)) {
					for twice := range 2 {
						n++
						k, now := known{}, digest{}
						if before && path[0] != 0 {
							k.decideLink(link{mark: mark{time: 1}, new: images[path[0]]}, now)
							now = images[path[0]]
						} else if before {
							k.decideLink(link{mark: mark{time: 1}, new: digest{9}}, now)
							k.decideLink(link{mark: mark{time: 2}, old: digest{9}}, digest{9})
						}
						for _, c := range order {
							for range twice + 1 {
								for _, l := range commands[c] {
									if v := k.decideLink(l, now); v.outcome == written || v.outcome == removal {
										now = l.new
									}
									if back, ok := decodeKnown(string(k.encodeMark())); !ok || fmt.Sprint(back) != fmt.Sprint(k) {
										t.Fatalf("encoded and decoded:\n%v\n%v", k, back)
									}
								}
							}
						}
						is := fmt.Sprintf("%v, cut %b, in the order %v, %d times, known before: %v", path, cuts, order, twice+1, before)
						if now != images[path[len(path)-1]] && !k.isMissing() {
							t.Errorf("%s: the row is %v, and there is no gap", is, now)
						}
						if back := slices.Contains(path[1:], path[0]); k.isMissing() && slices.IsSorted(order) && (before || !back) {
							t.Errorf("%s: a gap", is)
						}
					}
				}
			}
		}
	})
	t.Log(n, "histories")
}

// orders are all orders of n things.
func orders(n int) (all [][]int) {
	if n == 0 {
		return [][]int{nil}
	}
	for _, o := range orders(n - 1) {
		for i := range n {
			all = append(all, slices.Insert(slices.Clone(o), i, n-1))
		}
	}
	return all
}

// TestRepeatedInHoles: changes that filled a hole come again, and open no other.
func TestRepeatedInHoles(t *testing.T) {
	const second = 1e6
	none, a, b := digest{}, digest{1}, digest{2}
	change := func(id uint64, at int64, old, new digest) link {
		return link{mark: mark{time: at}, id: id, old: old, new: new, kept: true}
	}
	row := func(at int64, new digest) link {
		return link{mark: mark{time: at}, new: new, kind: aRow, kept: true}
	}
	filled := []link{change(2, 9*second, a, none), change(3, 10*second, none, a), change(4, 11*second, a, b), change(5, 11*second, b, none)}
	made := []link{change(1, 2*second, none, a), change(2, 5*second, a, b)}
	for name, x := range map[string]struct{ first, again []link }{
		"the end of a hole":    {[]link{change(1, 8*second, none, a), change(5, 11*second, b, none), change(6, 600*second, none, a)}, filled},
		"between full exports": {[]link{row(5.125*second, a), row(162*second, b)}, made},
		"behind a full export": {[]link{row(1.9*second, a), change(1, second, a, b), change(2, 100*second, b, a)}, []link{change(1, second, a, b)}},
		"before two":           {[]link{row(3*second, a), row(9*second, none), change(3, 2*second, none, b), change(4, 3*second, b, a), change(5, 4*second, a, none), change(6, 99*second, none, b)}, []link{change(3, 2*second, none, b)}},
	} {
		k, now := known{}, none
		for _, l := range slices.Concat(x.first, x.again, x.again) {
			if v := k.decideLink(l, now); v.applied {
				now = l.new
			}
		}
		if k.isMissing() {
			t.Errorf("%s: a gap: %+v", name, k.holes)
		}
	}
}

// TestFullExportEndsHoles: a full export has the result of the changes that are missing before it, so nothing is missing any
// more, but for a history.
func TestFullExportEndsHoles(t *testing.T) {
	const second = 1e6
	none, a, b, c := digest{}, digest{1}, digest{2}, digest{3}
	change := func(at int64, old, new digest) link {
		return link{mark: mark{time: at}, id: uint64(at), old: old, new: new}
	}
	row := func(at int64, new digest) link { return link{mark: mark{time: at}, new: new, kind: aRow} }
	hole := []link{row(second, a), change(200*second, b, c)}
	for _, x := range []struct {
		name    string
		export  link
		kept    bool
		missing bool
	}{
		{"behind the hole", row(300*second, c), false, false},
		{"of a later state", row(300*second, a), false, false},
		{"that lacks the row", row(300*second, none), false, false},
		{"in the hole", row(100*second, b), false, false},
		{"in the hole, and of another state", row(100*second, a), false, true},
		{"before the hole", row(second/2, b), false, true},
		{"of a history", row(300*second, c), true, true},
	} {
		for _, last := range [][]link{nil, {change(900*second, c, a)}} {
			k, now := known{}, none
			for _, l := range slices.Concat(hole, last, []link{x.export}) {
				l.kept = x.kept
				if v := k.decideLink(l, now); v.applied {
					now = l.new
				}
			}
			if k.isMissing() != x.missing {
				t.Errorf("%s, with %d changes behind: missing is %v: %+v", x.name, len(last), k.isMissing(), k.holes)
			}
		}
	}
}
