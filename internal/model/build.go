package model

import (
	"maps"
	"slices"
	"strings"
)

// Derivations can be built from the rows that there are (package build), but for history.
// A build is named by the entity on whose rows it is shown: counts, sums, means and distinct
// values, a set, statuses, and the latest of rows, which are built together. Other builds:
const (
	// BuildSubscribers begins the name of a build of all lists of subscribers of a rule.
	BuildSubscribers = "subscribers/"
	// BuildInPlace is a build of all rows that rules make, and of the values that they follow. They
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
		out[f.Name] = BuildInPlace
	}
	return out
}

// InBuildOrder returns the names of the model's builds of which is returns true, each once: a build comes
// behind those on whose rows it reads something, so that it reads them as they will be. In any other
// order, its values are only right when it has read the changes that the others make. Builds that
// read each other's rows have no such order; otherwise the order is by name.
func (m *Model) InBuildOrder(is func(build string) bool) (out []string) {
	builds := slices.Sorted(maps.Values(m.Builds()))
	return slices.DeleteFunc(withReaders(m.buildReads(), builds...), func(name string) bool { return !is(name) })
}

// BuildsBefore returns for each build those that must be complete before it, in the order of InBuildOrder: it reads
// something on their rows, or one of these does. Of builds that read each other's rows, one comes first.
func (m *Model) BuildsBefore() map[string][]string {
	out, reads := map[string][]string{}, m.buildReads()
	all := m.InBuildOrder(func(string) bool { return true })
	for i, name := range all {
		out[name] = slices.DeleteFunc(withReaders(reads, name), func(other string) bool { return !slices.Contains(all[:i], other) })
	}
	return out
}

// withReaders returns builds with those on whose rows they read something, each behind the ones that it reads.
func withReaders(reads map[string][]string, builds ...string) (out []string) {
	met := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if met[name] {
			return
		}
		met[name] = true
		for _, other := range reads[name] {
			visit(other)
		}
		out = append(out, name)
	}
	for _, name := range builds {
		visit(name)
	}
	return out
}

// buildReads returns for each build those on whose rows it reads something, sorted.
func (m *Model) buildReads() map[string][]string {
	builds, reads := m.Builds(), map[string][]string{}
	for _, d := range m.Derivations() {
		for _, of := range d.After {
			if other := builds[of]; builds[d.Name] != "" && other != "" { // history has none
				reads[builds[d.Name]] = append(reads[builds[d.Name]], other)
			}
		}
	}
	for name := range reads {
		reads[name] = sortedOnce(reads[name])
	}
	return reads
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
