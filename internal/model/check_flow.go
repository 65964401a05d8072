package model

import (
	"cmp"
	"slices"
	"strings"

	"weir/internal/seq"
	"weir/internal/store"
)

// reading is the part of the rows of one entity that a derivation reads.
type reading struct {
	what  string // the derivation, in messages
	at    pos    // of its declaration
	word  pos    // of the stage of a status
	makes string // the effect of a change of the rows: a value by the derivation's name, or the rows of an entity; "" for none
	of    *Entity
	in    *Input
	old   bool // it needs old images of the rows
}

// listFeeds returns, for each value and for the rows of each entity that weir makes, the rows that they are made from. All rows of an
// entity are one, because a row does not say which rule made it.
// An edge says that a change of the one can change the other: through rows, through fields that are
// added up or set, through conditions, and through names in the target's key.
func (c *compiler) listFeeds() map[string][]string {
	out := map[string][]string{}
	for _, r := range c.reads {
		if r.makes == "" {
			continue
		}
		if r.of.Derived {
			out[r.makes] = append(out[r.makes], r.of.Name)
		}
		out[r.makes] = append(out[r.makes], seq.Flat(r.in.reads(), func(f *Field) []string {
			return seq.Flat(f.Names(), func(name string) []string { return c.writersOf(r.of, name) })
		})...)
	}
	return out
}

// writersOf returns the derivations that write a field.
func (c *compiler) writersOf(e *Entity, name string) (out []string) {
	if t := c.valueOf(e, name); t != nil {
		out = append(out, t.Name)
	}
	for _, s := range e.Statuses {
		if slices.Contains(s.Attributes(), name) {
			out = append(out, s.Name)
		}
	}
	for _, l := range e.Latest {
		if slices.Contains(l.Attributes(), name) {
			out = append(out, l.Name)
		}
	}
	for _, f := range e.Follows {
		if f.Attr == name {
			out = append(out, f.Name)
		}
	}
	return out
}

// checkLoops reports derivations that depend on themselves, also through others. It
// reports each loop once, at the first of its derivations in the file.
// Without a loop, derivations settle after as many passes as the longest path has derivations.
func checkLoops(c *compiler) {
	feeds := c.listFeeds()
	inOrder := slices.SortedStableFunc(slices.Values(c.reads), func(a, b reading) int {
		return cmp.Or(cmp.Compare(a.at.line, b.at.line), cmp.Compare(a.at.column, b.at.column))
	})
	told := map[string]bool{}
	for _, start := range inOrder {
		way := shortestLoop(feeds, start.makes)
		if told[start.makes] || way == nil {
			continue
		}
		for _, name := range way {
			told[name] = true
		}
		c.addFlaw(start.at, "one of them has to be the application's own", "a loop: %s is derived from %s", start.makes, strings.Join(append(way[1:], start.makes), ", which is derived from "))
	}
}

// shortestLoop returns the shortest path from start back to start, nil if there is none.
// It is a search in breadth, so among shortest paths it returns the one that comes first in feeds.
func shortestLoop[T comparable](feeds map[T][]T, start T) []T {
	ways := [][]T{{start}}
	seen := map[T]bool{}
	for len(ways) > 0 {
		way := ways[0]
		ways = ways[1:]
		for _, next := range feeds[way[len(way)-1]] {
			if next == start {
				return way
			}
			if !seen[next] {
				seen[next] = true
				ways = append(ways, append(slices.Clone(way), next))
			}
		}
	}
	return nil
}

// checkExpiring reports a derivation from rows that weir makes with a time to live. Nothing tells when TTL has deleted one, so verify could
// not say what should be derived from it. A search index goes by the rows that there are.
func checkExpiring(c *compiler, r reading) {
	if r.of.ExpiresMade() && r.makes != "" {
		hint := "derive it from the rows that " + r.of.Name + " is made from"
		if strings.HasPrefix(r.what, r.of.Name+".") { // an entry that follows by itself
			hint = "leave the expiry of " + r.of.Name + " out, or the value: rows that expire cannot follow"
		}
		c.addFlaw(r.at, hint, "%s reads rows of %s, which weir makes and TTL deletes", r.what, r.of.Name)
	}
}

// checkKept reports state that is derived from a value which stays when the row that it follows is gone. No row says then what the
// value was, so verify could not come to it again. History is made from the changes, and a search index goes by the rows that there are.
func checkKept(c *compiler, r reading) {
	if e := c.Entity(r.makes); r.makes == "" || e != nil && e.IsHistory() {
		return
	}
	reads := seq.Flat(r.in.reads(), (*Field).Names)
	for _, f := range c.Follows {
		if f.Keep && f.Into == r.of && slices.Contains(reads, f.Attr) {
			c.addFlaw(r.at, "leave out keep: true, or read something else", "%s reads %s, which may be the last value of a row that is gone: nothing says then what it was", r.what, f.Into.Name+"."+f.Attr)
		}
	}
}

// checkImages reports a stream without the images that a derivation needs. A change adds
// f(new) − f(old), so the stream must carry both images. Only history of insertions and
// changes works without old images. Following always needs them: only the old image says
// that the row followed is gone.
// A stream with NEW_IMAGE, OLD_IMAGE or KEYS_ONLY lacks images without any error of DynamoDB, so
// only a check before the start can find it.
func checkImages(c *compiler, r reading) {
	const hint = "leave stream out: it has new and old images then"
	switch t := r.of.Table; {
	case t.Images == store.KeysOnlyImages:
		c.addFlaw(r.at, hint, "%s needs images of the rows, and the stream of table %s has only keys", r.what, t.Name)
	case r.old && t.Images != store.NewAndOldImages:
		c.addFlaw(r.at, hint, "%s needs old images, and the stream of table %s has none: a change or removal could not be taken back", r.what, t.Name)
	}
}
