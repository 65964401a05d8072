package build

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"weir/internal/catalog"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/projections"
	"weir/internal/runner"
)

// An estimate reads all that a build reads, so the kinds can also tell what rows will show
// (runner.Preview), and rows that are compared in place tell what differs.

// Preview is what a build will change of one derivation.
type Preview struct {
	Derivation string `json:"derivation"`
	// Rows is how many rows were compared, 0 of copies: all are.
	Rows   int64     `json:"rows,omitempty"`
	Differ int64     `json:"differ"`         // rows that will show something else
	Some   []Example `json:"some,omitempty"` // of these, the first ones by their keys
	// WaitsFor are derivations that must be built first, since only their values tell those of this one. Of it, rows are
	// neither compared nor shown, and its units are those of the rows as they are now.
	WaitsFor []string `json:"waitsFor,omitempty"`
}

// Example is what a row shows of a derivation, and what it will show, as verify prints values.
type Example struct {
	Row  string `json:"row"`
	Is   string `json:"is"`
	Will string `json:"will"`
}

// preview collects what the kinds say. Segments use it at the same time.
type preview struct {
	most  int // examples of a derivation
	model *model.Model

	mu    sync.Mutex
	names []string            // the derivations of the build that are new or changed
	waits map[string][]string // by derivation: what must be built first
	by    map[string]*Preview // by derivation
	parts []runner.Preview    // of the build
}

// Tells makes an entry for a derivation that is new or changed.
func (p *preview) Tells(derivation string) bool {
	if slices.Contains(p.names, derivation) {
		p.by[derivation] = &Preview{Derivation: derivation, WaitsFor: p.waits[derivation]}
	}
	return p.by[derivation] != nil
}

// Compared counts a row.
func (p *preview) Compared(derivation string) {
	if to := p.by[derivation]; to.WaitsFor == nil {
		to.Rows++
	}
}

// Differs takes in a row that will show something else.
// All are counted; the first p.most by row are kept as examples, in the order of their rows.
func (p *preview) Differs(derivation, row, is, will string) {
	to := p.by[derivation]
	if to == nil || to.WaitsFor != nil {
		return
	}
	x := Example{row, is, will}
	if p.model.HidesValuesOf(derivation) {
		x.Is, x.Will = model.HiddenText, model.HiddenText
	}
	at, _ := slices.BinarySearchFunc(to.Some, x, func(a, b Example) int { return cmp.Compare(a.Row, b.Row) })
	to.Differ++
	if at < p.most {
		to.Some = slices.Insert(to.Some, at, x)
		to.Some = to.Some[:min(len(to.Some), p.most)]
	}
}

// begin begins with a build and its derivations that are new or changed.
// It forgets the parts of the build before. A nil preview does nothing, here and below.
func (p *preview) begin(r *runner.Runner, build string, names []string, waits map[string][]string) {
	if p == nil {
		return
	}
	p.names, p.waits, p.parts, p.model = names, waits, nil, r.Model
	of := &runner.Previewing{Runner: r, Build: build, Entity: r.Model.Entity(build), Says: p}
	for _, k := range r.Kinds {
		p.parts = append(p.parts, k.Preview(of))
	}
}

// waits returns, by derivation that is new or changed, those that must be built before anybody can say what it will be. A dry
// run knows copies of rows that exist, if their build comes first, but for the values that they follow, in all copies: one
// build makes all. It does not know what is counted, followed or made of what a build changes.
func waits(p *catalog.Program, row owntable.CatalogRow, builds []string, again bool) map[string][]string {
	affected, copied := map[string]bool{}, map[string]bool{}
	for _, name := range builds {
		for _, of := range p.Rebuilt(row, name, again) {
			affected[of] = true
		}
	}
	copies := map[string]bool{}
	for _, d := range p.Derivations {
		copies[d.Into] = copies[d.Into] || d.Kind == "copy"
	}
	for _, d := range p.Derivations {
		if d.Kind == "follow" && copies[d.Into] && slices.Contains(builds, model.BuildInPlace) {
			affected[d.Name] = true
		}
	}
	reads := func(d *model.Derivation) (of []string) {
		for _, name := range d.After {
			if affected[name] {
				of = append(of, name)
			}
		}
		return of
	}
	for more := true; more; {
		more = false
		for i := range p.Derivations {
			if d := &p.Derivations[i]; !affected[d.Name] && len(reads(d)) > 0 {
				affected[d.Name], more = true, true
			}
		}
	}
	out := map[string][]string{}
	for _, build := range builds {
		var known []string
		for i := range p.Derivations {
			d := &p.Derivations[i]
			if !slices.Contains(p.Rebuilt(row, build, again), d.Name) {
				continue
			}
			of := slices.DeleteFunc(reads(d), func(name string) bool { return copied[name] })
			if len(of) > 0 {
				out[d.Name] = of
			} else if d.Kind == "copy" {
				known = append(known, d.Name)
			}
		}
		for _, name := range known {
			copied[name] = true
		}
	}
	return out
}

// add takes in a source row.
// It may be called by several goroutines.
func (p *preview) add(c *projections.Change) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, part := range p.parts {
		part.Add(c)
	}
}

// compare compares a row on which the build is shown.
// It may be called by several goroutines.
func (p *preview) compare(c *projections.Change) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, part := range p.parts {
		if err := part.Compare(c); err != nil {
			return err
		}
	}
	return nil
}

// end ends a build.
func (p *preview) end(ctx context.Context) error {
	if p == nil {
		return nil
	}
	for _, part := range p.parts {
		if err := part.End(ctx); err != nil {
			return err
		}
	}
	return nil
}

// differs takes in a difference of a copy.
func (p *preview) differs(d runner.Difference) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Differs(d.Derivation, d.Row, d.Have, d.Want)
}

// Previews returns what the last estimate says of derivations that are new or changed, or of
// all that are built again.
func (b *Builder) Previews() (out []Preview) {
	if b.preview == nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(b.preview.by)) {
		out = append(out, *b.preview.by[name])
	}
	return out
}
