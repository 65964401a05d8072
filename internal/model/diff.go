package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Diff says how the derivations of a model change when another version of it is deployed.
type Diff struct {
	Name        string           `json:"model"`
	Was         string           `json:"was,omitempty"` // the model's name, if it is another: to weir, these are two models
	Derivations []DerivationDiff `json:"derivations"`   // sorted by name
	Builds      []BuildDiff      `json:"builds"`        // that the new model takes, sorted
	Tables      []TableDiff      `json:"tables"`        // whose streams must have other images
	Parts       []PartDiff       `json:"parts"`         // of the file, in the order of the new one
}

// The outcome for a derivation or a part.
const (
	Added   = "added"
	Changed = "changed"
	Removed = "removed"
	Renamed = "renamed" // the definition of one that is removed, under another name
)

// DerivationDiff is a derivation that is not the same: of the new model, or of the old one if it is
// removed.
type DerivationDiff struct {
	Name    string   `json:"name"`
	Kind    string   `json:"kind"`
	What    string   `json:"what"`           // Added, Changed, Removed or Renamed
	Was     string   `json:"was,omitempty"`  // the name of a renamed one in the old model
	Hash    string   `json:"hash,omitempty"` // of its definition in the new model
	By      []string `json:"by,omitempty"`   // parts of the file that change it, but for its own
	Then    string   `json:"then"`           // the fate of its values; package kinds says it
	Build   string   `json:"-"`              // the build that it is part of (Builds); "" for history, search and removed ones
	Into    string   `json:"-"`              // as Tally and History, of the Derivation
	Tally   bool     `json:"-"`
	History bool     `json:"-"`
}

// BuildDiff is a build that the new model takes.
type BuildDiff struct {
	Build string   `json:"build"`
	Of    []string `json:"of"`             // new or changed derivations
	With  []string `json:"with,omitempty"` // derivations that are built with it, and stay live
}

// PartDiff is a part of a model file that is not the same: "queries.albums",
// "entities.Album.where".
type PartDiff struct {
	Path string `json:"path"`
	What string `json:"what"` // Added, Changed or Removed
	// Derivations are those that this part changes, sorted. None means that it changes nothing
	// that is derived.
	Derivations []string `json:"changes"`
	// Alone reports that the part can be changed without the others. If not, Derivations are
	// the changes that all such parts make together.
	Alone bool `json:"alone"`
}

// TableDiff is a table whose stream must have other images.
type TableDiff struct {
	Table  string `json:"table"`
	Was    string `json:"was,omitempty"` // "" for a table that the old model does not have
	Images string `json:"images"`
}

// DiffOf compares two models that were read from files. The effect of a part is found by
// changing it alone.
func DiffOf(was, is *Model) *Diff {
	d := &Diff{Name: is.Name, Derivations: []DerivationDiff{}, Builds: []BuildDiff{}, Tables: []TableDiff{}, Parts: []PartDiff{}}
	if old, now := documentOf(was), documentOf(is); was.Name == is.Name {
		d.compareDerivations(byName(was), is, old, now)
		d.noteParts(was, is, old, now)
	} else {
		d.Was = was.Name
		d.compareDerivations(nil, is, old, now)
	}
	d.noteCauses()
	d.noteBuilds(is.Builds())
	for _, t := range is.Tables {
		x := TableDiff{Table: t.Name, Images: string(t.Images)}
		if o := was.Table(t.Name); o != nil {
			x.Was = string(o.Images)
		}
		if x.Was != x.Images {
			d.Tables = append(d.Tables, x)
		}
	}
	return d
}

// compareDerivations compares those that the old model has with those of the new one.
// One that has another name and is otherwise the same is renamed, and neither added nor removed. The order is by name, with
// the removed ones at the end.
func (d *Diff) compareDerivations(before map[string]Derivation, is *Model, old, now *yaml.Node) {
	after := byName(is)
	builds := is.Builds()
	gone := map[string]bool{}
	for name := range before {
		_, left := after[name]
		gone[name] = !left
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		x := diffOf(after[name])
		x.Build, x.Hash = builds[name], after[name].Hash
		if o, there := before[name]; !there {
			if x.What, x.Was = Added, findRenamed(name, x.Kind, gone, before, old, now); x.Was != "" {
				x.What, gone[x.Was] = Renamed, false
			}
		} else if x.What = Changed; o.Hash == x.Hash {
			continue
		} else if o.SameLists(x.Hash) {
			x.Build = ""
		}
		d.Derivations = append(d.Derivations, x)
	}
	for _, name := range slices.Sorted(maps.Keys(gone)) {
		if gone[name] {
			x := diffOf(before[name])
			x.What = Removed
			d.Derivations = append(d.Derivations, x)
		}
	}
	slices.SortFunc(d.Derivations, func(a, b DerivationDiff) int { return cmp.Compare(a.Name, b.Name) })
}

// diffOf begins the entry of a derivation, without its change.
func diffOf(d Derivation) DerivationDiff {
	return DerivationDiff{Name: d.Name, Kind: d.Kind, Into: d.Into, Tally: d.Tally, History: d.History}
}

// noteCauses notes the parts that change each derivation, except where it is declared.
func (d *Diff) noteCauses() {
	for i := range d.Derivations {
		x := &d.Derivations[i]
		for _, part := range d.Parts {
			if slices.Contains(part.Derivations, x.Name) && !x.declaredAt(part.Path) {
				x.By = append(x.By, part.Path)
			}
		}
	}
}

// declaredAt reports whether a part of a file is where the derivation is declared.
func (x *DerivationDiff) declaredAt(path string) bool {
	for _, name := range []string{x.Name, x.Was} {
		rule, _, _ := strings.Cut(name, ".")
		if path == "derive."+name || path == "derive."+rule || SearchDerivation(strings.TrimPrefix(path, "search.")) == name {
			return true
		}
	}
	return false
}

// noteBuilds notes the builds that the new model takes. of has the build of each of its derivations.
func (d *Diff) noteBuilds(of map[string]string) {
	differ := map[string][]string{}
	for _, x := range d.Derivations {
		if x.Build != "" {
			differ[x.Build] = append(differ[x.Build], x.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(differ)) {
		b := BuildDiff{Build: name, Of: differ[name]}
		for _, with := range slices.Sorted(maps.Keys(of)) {
			if of[with] == name && !slices.Contains(b.Of, with) {
				b.With = append(b.With, with)
			}
		}
		d.Builds = append(d.Builds, b)
	}
}

// findRenamed returns the name of a derivation that is gone and is written as another one is, for
// the same rows; "" for none.
func findRenamed(name, kind string, gone map[string]bool, before map[string]Derivation, old, now *yaml.Node) string {
	at := func(name string) []string {
		if in, ok := SearchOf(name); ok {
			return []string{"search", in}
		}
		return []string{"derive", name}
	}
	text := nodeAt(now, at(name))
	for _, was := range slices.Sorted(maps.Keys(gone)) {
		if entity, _, _ := strings.Cut(name, "."); gone[was] && before[was].Kind == kind && text != nil && sameNode(text, nodeAt(old, at(was))) {
			if of, _, _ := strings.Cut(was, "."); before[was].free || of == entity {
				return was
			}
		}
	}
	return ""
}

// byName has the model's derivations by their names.
func byName(m *Model) map[string]Derivation {
	out := map[string]Derivation{}
	for _, d := range m.Derivations() {
		out[d.Name] = d
	}
	return out
}

// depths is how deep parts of a section are: others are two deep, a section and a name.
var depths = map[string]int{"model": 1, "entities": 3}

// partsOf returns the paths of the parts that differ, in the order of the new file and then of the old one.
func partsOf(old, now *yaml.Node) (out [][]string) {
	var differ func(path []string, a, b *yaml.Node)
	differ = func(path []string, a, b *yaml.Node) {
		switch depth := cmp.Or(depths[strings.Join(path[:min(1, len(path))], "")], 2); {
		case sameNode(a, b):
		case len(path) < depth && isMapping(a) && isMapping(b),
			len(path) < min(depth, 2) && (a == nil || b == nil) && (isMapping(a) || isMapping(b)): // a section that one file does not have
			for _, key := range keysOf(b, a) {
				differ(append(slices.Clone(path), key), nodeAt(a, []string{key}), nodeAt(b, []string{key}))
			}
		default:
			out = append(out, path)
		}
	}
	differ(nil, old, now)
	return out
}

// noteParts notes which changes each part that differs leads to, if it is changed alone in the old file or back in the new one. Those that
// cannot be, as the parts of an entity that is renamed, are changed all at once. Where even that is no model, they change
// whatever no other part explains.
func (d *Diff) noteParts(was, is *Model, old, now *yaml.Node) {
	there, back, explained := old, now, map[string]bool{}
	for _, path := range partsOf(old, now) {
		a, b := nodeAt(old, path), nodeAt(now, path)
		p := PartDiff{Path: strings.Join(path, "."), What: Changed, Derivations: []string{}}
		switch {
		case a == nil:
			p.What = Added
		case b == nil:
			p.What = Removed
		}
		if names, ok := whatChanges(was, setAt(old, path, b), is, setAt(now, path, a)); ok {
			p.Alone, p.Derivations = true, names
			for _, name := range names {
				explained[name] = true
			}
		} else {
			there, back = setAt(there, path, b), setAt(back, path, a)
		}
		d.Parts = append(d.Parts, p)
	}
	if there == old {
		return
	}
	names, ok := whatChanges(was, there, is, back)
	if !ok {
		names = slices.DeleteFunc(differingNames(byName(was), byName(is)), func(name string) bool { return explained[name] })
	}
	for i := range d.Parts {
		if p := &d.Parts[i]; !p.Alone {
			p.Derivations = names
		}
	}
}

// whatChanges returns the derivations that a model's file changes if it becomes another one or, if that is no model, those
// that another model's file changes so. ok is false if neither becomes a model.
func whatChanges(of *Model, to *yaml.Node, orOf *Model, orTo *yaml.Node) (names []string, ok bool) {
	m, err := of.parseAs(to)
	if err != nil {
		if m, err = orOf.parseAs(orTo); err != nil {
			return nil, false
		}
		of = orOf
	}
	return differingNames(byName(of), byName(m)), true
}

// parseAs returns the model that another text of the file is.
func (m *Model) parseAs(to *yaml.Node) (*Model, error) {
	text, err := yaml.Marshal(to)
	if err != nil {
		return nil, err
	}
	return Parse(m.File, text)
}

// differingNames returns the names of derivations that are not the same.
func differingNames(a, b map[string]Derivation) []string {
	names := []string{}
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

// isMapping reports whether a node of the file is a map.
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

// nodeAt returns the node at a path of maps, nil for nothing.
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

// setAt returns a copy of a map in which something else is at a path; nil removes the node
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

// Without returns the model of its file without the nodes at some paths, each the keys of maps, such as
// "derive" and "Album.mediaCount". Maps that are then empty go too. The error says that there is nothing at the first path, or
// the problems of the rest.
func (m *Model) Without(paths ...[]string) (*Model, error) {
	doc := documentOf(m)
	for i, path := range paths {
		switch {
		case nodeAt(doc, path) != nil:
			doc = setAt(doc, path, nil)
		case i == 0:
			return nil, fmt.Errorf("model %s has nothing at %s", m.Name, strings.Join(path, "."))
		}
	}
	return m.parseAs(doc)
}
