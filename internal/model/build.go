package model

import (
	"maps"
	"slices"
	"strings"
)

// What is derived can be built from the rows that are there (package build), but for history.
// A build is named by the entity on whose rows it is shown: counts, sums, means and distinct
// values, a set, statuses, and the latest of rows, which are built together. Other builds:
const (
	// BuildSubscribers begins the name of a build of all lists of subscribers of a rule.
	BuildSubscribers = "subscribers/"
	// BuildInPlace is a build of all rows that rules make, and of what they follow. They
	// carry the positions of their source rows, so they have no generations.
	BuildInPlace = "copies/"
)

// Builds returns for each derivation that rows tell the name of the build that it is part
// of. History and search indexes have none.
// Derivations of one name are built together, or not at all. The map is made by each call and
// belongs to the caller.
func (m *Model) Builds() map[string]string {
	out := map[string]string{}
	for _, t := range m.Tallies {
		out[t.Name] = t.Target.Name
	}
	for _, s := range m.Statuses {
		out[s.Name] = s.Target.Name
	}
	for _, l := range m.Latest {
		out[l.Name] = l.Target.Name
	}
	for _, r := range m.Rows {
		switch {
		case r.Subscribers != nil:
			out[r.Name] = BuildSubscribers + r.Name
		case len(r.Keep) == 0:
			out[r.Name] = BuildInPlace
		}
	}
	for _, f := range m.Follows {
		out[f.Rule.Name+"."+f.Attr] = BuildInPlace
	}
	return out
}

// InBuildOrder returns the names of the model's builds of which is returns true, each once: a build comes
// behind those on whose rows it reads something, so that it reads them as they will be. In any other
// order, what it shows is only right when it has read the changes that the others make. Builds that
// read each other's rows have no such order; otherwise the order is by name.
func (m *Model) InBuildOrder(is func(build string) bool) (out []string) {
	builds, derivations := m.Builds(), m.Derivations()
	var visit func(name string)
	met := map[string]bool{}
	visit = func(name string) {
		if met[name] {
			return
		}
		met[name] = true
		var reads []string
		for i := range derivations {
			if d := &derivations[i]; builds[d.Name] == name {
				for _, of := range d.After {
					if build := builds[of]; build != "" { // history has none
						reads = append(reads, build)
					}
				}
			}
		}
		for _, other := range sortedOnce(reads) {
			visit(other)
		}
		if is(name) {
			out = append(out, name)
		}
	}
	for _, name := range slices.Sorted(maps.Values(builds)) {
		visit(name)
	}
	return out
}

// CanBuild reports whether there is a build of this name.
func (m *Model) CanBuild(name string) bool {
	return slices.Contains(slices.Collect(maps.Values(m.Builds())), name)
}

// BuiltRule returns the name of the rule whose subscribers a build is of. ok is false if it
// is of something else.
func BuiltRule(build string) (rule string, ok bool) {
	return strings.CutPrefix(build, BuildSubscribers)
}
