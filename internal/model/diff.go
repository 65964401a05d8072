package model

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Diff is what becomes of the derivations of a model when another version of it is deployed.
type Diff struct {
	Name, Was   string           // of the models; to weir, models of two names are two models
	Derivations []DerivationDiff // sorted by name
	Parts       []PartDiff       // of the file, in the order of the new one
	Tables      []TableDiff      // whose streams must have other images
}

// What became of a derivation or a part.
const (
	Added   = "added"
	Changed = "changed"
	Removed = "removed"
	Renamed = "renamed" // the definition of one that is removed, under another name
)

// DerivationDiff is a derivation that is not the same.
type DerivationDiff struct {
	Derivation        // of the new model; of the old one if it is removed
	What       string // Added, Changed, Removed or Renamed
	Was        string // the name of a renamed one in the old model
	Build      string // what it is built with (Builds); "" for history, search and removed ones
}

// PartDiff is a part of a model file that is not the same: "queries.albums",
// "entities.Album.where".
type PartDiff struct {
	Path string
	What string // Added, Changed or Removed
	// Derivations are those that this part alone changes, sorted. None means that it changes
	// nothing that is derived, if Alone.
	Derivations []string
	// Alone reports that the part can be changed without the others. If not, it is not known
	// what it changes.
	Alone bool
}

// TableDiff is a table whose stream must have other images.
type TableDiff struct {
	Table, Was, Images string // Was is "" for a table that the old model does not have
}

// DiffOf compares two models that were read from files. What a part changes is found by
// changing it alone.
func DiffOf(was, is *Model) *Diff {
	d := &Diff{Name: is.Name, Was: was.Name}
	if old, now := documentOf(was), documentOf(is); was.Name == is.Name {
		d.derivations(byName(was), is, old, now)
		for _, p := range partsOf(old, now) {
			d.Parts = append(d.Parts, p.tried(was, is, old, now))
		}
	} else {
		d.derivations(nil, is, old, now)
	}
	for _, t := range is.Tables {
		x := TableDiff{Table: t.Name, Images: string(t.Images())}
		if o := was.Table(t.Name); o != nil {
			x.Was = string(o.Images())
		}
		if x.Was != x.Images {
			d.Tables = append(d.Tables, x)
		}
	}
	return d
}

// derivations compares those that the old model has with those of the new one.
func (d *Diff) derivations(before map[string]Derivation, is *Model, old, now *yaml.Node) {
	after := byName(is)
	builds := is.Builds()
	gone := map[string]bool{}
	for name := range before {
		_, left := after[name]
		gone[name] = !left
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		x := DerivationDiff{Derivation: after[name], Build: builds[name]}
		if o, there := before[name]; !there {
			if x.What, x.Was = Added, renamed(name, x.Kind, gone, before, old, now); x.Was != "" {
				x.What, gone[x.Was] = Renamed, false
			}
		} else if x.What = Changed; o.Hash == x.Hash {
			continue
		}
		d.Derivations = append(d.Derivations, x)
	}
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		if gone[name] {
			d.Derivations = append(d.Derivations, DerivationDiff{Derivation: before[name], What: Removed})
		}
	}
	slices.SortFunc(d.Derivations, func(a, b DerivationDiff) int { return cmp.Compare(a.Name, b.Name) })
}

// renamed returns the name of a derivation that is gone and is written as another one is, for
// the same rows; "" for none.
func renamed(name, kind string, gone map[string]bool, before map[string]Derivation, old, now *yaml.Node) string {
	at := func(name string) []string {
		if in, ok := strings.CutPrefix(name, "search/"); ok {
			return []string{"search", in}
		}
		return []string{"derive", name}
	}
	text := nodeAt(now, at(name))
	for _, was := range slices.Sorted(maps.Keys(gone)) {
		if entity, _, _ := strings.Cut(name, "."); gone[was] && before[was].Kind == kind && text != nil && sameNode(text, nodeAt(old, at(was))) {
			if of, _, _ := strings.Cut(was, "."); kind == "copy" || kind == "search" || of == entity {
				return was
			}
		}
	}
	return ""
}

func byName(m *Model) map[string]Derivation {
	out := map[string]Derivation{}
	for _, d := range m.Derivations() {
		out[d.Name] = d
	}
	return out
}

// filePart is a path of a model file at which two files differ.
type filePart struct{ path []string }

// depths is how deep parts of a section are: others are two deep, a section and a name.
var depths = map[string]int{"model": 1, "entities": 3}

// partsOf returns the parts that differ, in the order of the new file and then of the old one.
func partsOf(old, now *yaml.Node) (out []filePart) {
	var differ func(path []string, a, b *yaml.Node)
	differ = func(path []string, a, b *yaml.Node) {
		switch depth := cmp.Or(depths[strings.Join(path[:min(1, len(path))], "")], 2); {
		case sameNode(a, b):
		case len(path) < depth && isMapping(a) && isMapping(b):
			for _, key := range keysOf(b, a) {
				differ(append(slices.Clone(path), key), nodeAt(a, []string{key}), nodeAt(b, []string{key}))
			}
		case len(path) < min(depth, 2) && (a == nil || b == nil) && (isMapping(a) || isMapping(b)):
			for _, key := range keysOf(b, a) { // of a section that one file does not have
				differ(append(slices.Clone(path), key), nodeAt(a, []string{key}), nodeAt(b, []string{key}))
			}
		default:
			out = append(out, filePart{path})
		}
	}
	differ(nil, old, now)
	return out
}

// tried changes the part alone, in the old file or back in the new one, and notes which
// derivations change.
func (p filePart) tried(was, is *Model, old, now *yaml.Node) PartDiff {
	out := PartDiff{Path: strings.Join(p.path, "."), What: Changed}
	a, b := nodeAt(old, p.path), nodeAt(now, p.path)
	switch {
	case a == nil:
		out.What = Added
	case b == nil:
		out.What = Removed
	}
	for _, try := range []struct {
		of   *Model
		in   *yaml.Node
		part *yaml.Node
	}{{was, old, b}, {is, now, a}} {
		text, err := yaml.Marshal(setAt(try.in, p.path, try.part))
		if err != nil {
			continue
		}
		if m, err := Parse(try.of.File, text); err == nil {
			out.Alone, out.Derivations = true, differing(byName(try.of), byName(m))
			break
		}
	}
	return out
}

// differing returns the names of derivations that are not the same.
func differing(a, b map[string]Derivation) (names []string) {
	for name, d := range a {
		if o, there := b[name]; !there || o.Hash != d.Hash {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, there := a[name]; !there {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// documentOf returns the map that a model's file is.
func documentOf(m *Model) *yaml.Node {
	var doc yaml.Node
	if err := yaml.Unmarshal(m.text, &doc); err != nil || len(doc.Content) == 0 {
		return nil // of no model that was read from a file
	}
	return doc.Content[0]
}

func isMapping(n *yaml.Node) bool { return n != nil && n.Kind == yaml.MappingNode }

// keysOf returns the keys of maps, each once, in their order.
func keysOf(maps ...*yaml.Node) (out []string) {
	for _, n := range maps {
		for i := 0; isMapping(n) && i < len(n.Content); i += 2 {
			if key := n.Content[i].Value; !slices.Contains(out, key) {
				out = append(out, key)
			}
		}
	}
	return out
}

// nodeAt returns what is at a path of maps, nil for nothing.
func nodeAt(n *yaml.Node, path []string) *yaml.Node {
	for _, key := range path {
		if !isMapping(n) {
			return nil
		}
		var at *yaml.Node
		for i := 0; i < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				at = n.Content[i+1]
			}
		}
		n = at
	}
	return n
}

// setAt returns a copy of a map in which something else is at a path; nil removes what is
// there, and maps that are then empty.
func setAt(n *yaml.Node, path []string, to *yaml.Node) *yaml.Node {
	if len(path) == 0 {
		return to
	}
	out := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	found := false
	if isMapping(n) {
		for i := 0; i < len(n.Content); i += 2 {
			key, in := n.Content[i], n.Content[i+1]
			if key.Value == path[0] {
				found = true
				if in = setAt(in, path[1:], to); in == nil || isMapping(in) && len(in.Content) == 0 && to == nil {
					continue
				}
			}
			out.Content = append(out.Content, key, in)
		}
	}
	if !found && to != nil {
		out.Content = append(out.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: path[0]}, setAt(nil, path[1:], to))
	}
	return out
}

// sameNode reports whether two nodes mean the same: comments, style, and the order of keys
// mean nothing.
func sameNode(a, b *yaml.Node) bool {
	if a == nil || b == nil || a.Kind != b.Kind {
		return a == b
	}
	if !isMapping(a) {
		return a.ShortTag() == b.ShortTag() && a.Value == b.Value && slices.EqualFunc(a.Content, b.Content, sameNode)
	}
	if len(a.Content) != len(b.Content) {
		return false
	}
	for i := 0; i < len(a.Content); i += 2 {
		if !sameNode(a.Content[i+1], nodeAt(b, []string{a.Content[i].Value})) {
			return false
		}
	}
	return true
}
