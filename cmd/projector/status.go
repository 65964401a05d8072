package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"weir/internal/build"
	"weir/internal/catalog"
	"weir/internal/owntable"
	"weir/internal/system"
)

type statusCommand struct {
	data
	output
	Model string `arg:"" help:"Name of a built-in model or path of a model file."`
}

func (statusCommand) Help() string {
	return `Prints the tables of the model as weir knows them, who reads their streams, and
every derivation with its state, generation, definition and the time since when.
Of search indexes it prints those of every definition that there are.
If this program and model would be refused, it says why, and exits with 1.

  projector status gallery --data ./data
  projector status gallery --aws -o json`
}

// status is a model's catalog as results show it.
type status struct {
	Model       string       `json:"model"`
	Tables      []pinned     `json:"tables"`
	Derivations []derivation `json:"derivations"`
	Builds      []underway   `json:"builds,omitempty"`
	Search      []indexed    `json:"search,omitempty"`
	Refused     string       `json:"refused,omitempty"` // why the program would be
}

type pinned struct {
	Table     string     `json:"table"`
	ID        string     `json:"id,omitempty"`
	ARN       string     `json:"arn,omitempty"`
	Stream    string     `json:"stream,omitempty"`
	Images    string     `json:"images,omitempty"`
	Complete  string     `json:"complete,omitempty"`
	Since     *time.Time `json:"since,omitempty"`
	Reader    string     `json:"reader,omitempty"`
	ReadSince *time.Time `json:"readSince,omitempty"`
}

type derivation struct {
	Name       string     `json:"name"`
	Kind       string     `json:"kind,omitempty"` // "" if the model does not have it
	State      string     `json:"state"`
	Generation int64      `json:"generation,omitempty"`
	Hash       string     `json:"hash,omitempty"`  // of the present values
	Model      string     `json:"model,omitempty"` // of the model, where it is another
	Since      *time.Time `json:"since,omitempty"`
	Shares     []string   `json:"shares,omitempty"`
}

// underway is a build that is not verified, or that goes over or has gone over from marks to
// positions.
type underway struct {
	Entity     string              `json:"entity"`
	Generation int64               `json:"generation"`
	State      owntable.BuildState `json:"state"`
	Since      time.Time           `json:"since"`
	Audit      *time.Time          `json:"auditFrom,omitempty"`
	Rows       int64               `json:"rows,omitempty"`          // read in this state
	Of         int64               `json:"of,omitempty"`            // approximately
	PerSecond  float64             `json:"perSecond,omitempty"`     // rows
	Left       float64             `json:"secondsLeft,omitempty"`   // approximately
	HandOver   *time.Time          `json:"handOverAt,omitempty"`    // later records count by position
	Waits      int                 `json:"handOverWaits,omitempty"` // shards that may have earlier ones
	Positions  *time.Time          `json:"positionsSince,omitempty"`
	Unmarked   *time.Time          `json:"unmarkedSince,omitempty"` // since when there are no marks
	now        time.Time
}

// indexed is a search index, of the model's definitions or of others.
type indexed struct {
	Name       string     `json:"name"`
	State      string     `json:"state"`
	Generation string     `json:"generation,omitempty"`
	Hash       string     `json:"hash,omitempty"`
	Model      string     `json:"model,omitempty"` // of the model, where it is another
	Kind       string     `json:"kind,omitempty"`
	Place      string     `json:"place,omitempty"`
	Rows       int64      `json:"rows,omitempty"` // read until now, while it is building
	Since      *time.Time `json:"since,omitempty"`
	Applied    *time.Time `json:"applied,omitempty"`
	ByFunction bool       `json:"byFunction,omitempty"`
}

func (c *statusCommand) Run(p *program) error {
	s, err := p.existing(c.data, []string{c.Model}, system.Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	of := s.Models[0].Runner.Catalog
	row, refused, err := of.Look(p.ctx)
	if err != nil {
		return err
	}
	st := statusOf(of.Program(), row)
	if st.Builds, err = builtOf(p.ctx, s); err != nil {
		return err
	}
	if st.Search, err = searchOf(p.ctx, s); err != nil {
		return err
	}
	if refused != nil {
		st.Refused = refused.Error()
	}
	if c.Output == "text" {
		st.text(p)
	} else {
		json.NewEncoder(p.stdout).Encode(st)
	}
	if refused != nil {
		return failed(exitCheck)
	}
	return nil
}

func statusOf(prog *catalog.Program, row owntable.CatalogRow) status {
	st := status{Model: prog.Model, Tables: []pinned{}, Derivations: []derivation{}}
	tables := maps.Clone(row.Tables)
	for t := range prog.Needs {
		if _, ok := tables[t]; !ok {
			tables[t] = owntable.Pin{}
		}
	}
	for _, t := range slices.Sorted(maps.Keys(tables)) {
		pin := tables[t]
		st.Tables = append(st.Tables, pinned{
			Table: t, ID: pin.ID, ARN: pin.ARN, Stream: pin.Stream, Images: string(pin.Images), Complete: string(pin.Complete),
			Since: unlessZero(pin.Since), Reader: pin.Reader, ReadSince: unlessZero(pin.Read),
		})
	}
	ours := map[string]bool{}
	for i := range prog.Derivations {
		d := &prog.Derivations[i]
		ours[d.Name] = true
		out := derivation{Name: d.Name, Kind: d.Kind, Shares: d.Shares, State: "new", Model: d.Hash}
		if is, ok := row.Derivations[d.Name]; ok {
			out.State, out.Generation, out.Hash, out.Since = string(is.State), is.Generation, is.Hash, unlessZero(is.Since)
			if is.Hash == d.Hash {
				out.Model = ""
			}
		}
		st.Derivations = append(st.Derivations, out)
	}
	for _, name := range slices.Sorted(maps.Keys(row.Derivations)) {
		if is := row.Derivations[name]; !ours[name] {
			st.Derivations = append(st.Derivations, derivation{
				Name: name, State: string(is.State), Generation: is.Generation, Hash: is.Hash, Since: unlessZero(is.Since),
			})
		}
	}
	return st
}

func builtOf(ctx context.Context, s *system.System) (out []underway, err error) {
	b := builderOf(s.Models[0])
	all, err := b.States(ctx)
	now := b.Runner.Now()
	for i := range all {
		is := &all[i]
		if h := is.HandOver; is.State == owntable.BuildVerified {
			if is.Marks {
				out = append(out, underway{
					Entity: is.Entity, Generation: is.Generation, State: is.State, Since: is.Since, Waits: is.Waits, now: now,
					HandOver: unlessZero(h.At), Positions: unlessZero(h.Passed), Unmarked: unlessZero(h.Over),
				})
			}
			continue
		}
		one := underway{Entity: is.Entity, Generation: is.Generation, State: is.State, Since: is.Since, Rows: is.Rows, Of: is.Of, Left: is.Left(now).Seconds()}
		if spent := now.Sub(is.Since).Seconds(); spent > 0 && is.State != owntable.BuildLive {
			one.PerSecond = float64(is.Rows) / spent
		}
		if is.State == owntable.BuildLive {
			at := is.Announced.Add(catalog.AuditAfter)
			one.Audit = &at
		}
		out = append(out, one)
	}
	return out, err
}

// counts says how a verified build counts.
func (b underway) counts() string {
	switch {
	case b.Unmarked != nil:
		return "counts by positions since " + stamped(b.Positions)
	case b.Positions != nil:
		return "counts by positions since " + stamped(b.Positions) + "; its marks are removed from " + stamped(new(b.Positions.Add(build.InUse)))
	case b.HandOver == nil:
		return "counts by marks; it goes over to positions when processes read its streams"
	case b.now.Before(*b.HandOver):
		return "counts by marks until " + stamped(b.HandOver)
	}
	waits := "1 shard has"
	if b.Waits != 1 {
		waits = fmt.Sprint(b.Waits, " shards have")
	}
	return fmt.Sprintf("goes over from marks to positions since %s; %s applied no later record yet", stamped(b.HandOver), waits)
}

func (b underway) text() string {
	if b.State == owntable.BuildVerified {
		return fmt.Sprintf("build of %s: verified, generation %d, %s", b.Entity, b.Generation, b.counts())
	}
	out := fmt.Sprintf("build of %s: %s since %s, generation %d", b.Entity, b.State, stamped(&b.Since), b.Generation)
	if b.Audit != nil {
		return out + ", not yet audited: projector build audits it from " + stamped(b.Audit)
	}
	out += fmt.Sprintf(", %d rows read, %.0f/s", b.Rows, b.PerSecond)
	if b.Left > 0 {
		out += fmt.Sprintf(", of about %d, about %s left", b.Of, (time.Duration(b.Left) * time.Second).Round(time.Second))
	}
	return out
}

func searchOf(ctx context.Context, s *system.System) (all []indexed, err error) {
	gs, err := s.SearchGenerations(ctx, s.Models[0])
	hashes, there := map[string]string{}, map[string]bool{}
	for _, d := range s.Models[0].Model.Derivations() {
		if d.Kind == "search" {
			hashes[d.Name] = d.Hash
		}
	}
	for _, g := range gs {
		state := map[bool]string{true: string(owntable.Building), false: "left"}[g.Filling]
		if g.Filled {
			state = string(owntable.Live)
		}
		for _, ix := range g.Indexes {
			is := indexed{
				Name: ix.Name, State: state, Generation: g.Generation, Hash: ix.Hash, Kind: g.Kind, Place: ix.Place, Rows: g.Rows,
				Since: unlessZero(g.Since), Applied: unlessZero(g.Applied), ByFunction: g.ByFunction,
			}
			if there[ix.Name] = there[ix.Name] || g.Ours; !g.Ours {
				is.Model = hashes[ix.Name]
			}
			all = append(all, is)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(hashes)) {
		if !there[name] {
			all = append(all, indexed{Name: name, State: "new", Model: hashes[name]})
		}
	}
	return all, err
}

func unlessZero(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (st *status) text(p *program) {
	for _, t := range st.Tables {
		if t.ID == "" {
			fmt.Fprintf(p.stdout, "table %s: not begun\n", t.Table)
			continue
		}
		fmt.Fprintf(p.stdout, "table %s: %s", t.Table, t.ID)
		switch t.Complete {
		case string(owntable.CompleteMade):
			fmt.Fprintf(p.stdout, ", made with its stream %s", stamped(t.Since))
		case string(owntable.CompleteWhole):
			fmt.Fprintf(p.stdout, ", read from its first change on")
		case string(owntable.CompleteAssumed):
			fmt.Fprintf(p.stdout, ", assumed complete %s", stamped(t.Since))
		default:
			fmt.Fprint(p.stdout, ", not known to be complete")
		}
		fmt.Fprintf(p.stdout, ", stream %s %s", t.Stream, t.Images)
		if t.Reader != "" {
			fmt.Fprintf(p.stdout, ", read by %s since %s", catalog.Reader(t.Reader), stamped(t.ReadSince))
		}
		fmt.Fprintln(p.stdout)
	}
	for _, d := range st.Derivations {
		fmt.Fprintf(p.stdout, "%s: %s", d.Name, d.State)
		if d.Since != nil {
			fmt.Fprintf(p.stdout, " since %s, generation %d, definition %s", stamped(d.Since), d.Generation, d.Hash)
		}
		switch {
		case d.Kind == "" && d.State != string(owntable.Retired):
			fmt.Fprint(p.stdout, "; the model does not have it")
		case d.Model != "" && d.Hash != "":
			fmt.Fprintf(p.stdout, "; the model has definition %s", d.Model)
		}
		fmt.Fprintln(p.stdout)
	}
	for _, b := range st.Builds {
		fmt.Fprintln(p.stdout, b.text())
	}
	for _, x := range st.Search {
		fmt.Fprintln(p.stdout, x.text())
	}
	if st.Refused != "" {
		fmt.Fprintf(p.stderr, "would be refused: %s\n", st.Refused)
	}
}

func (x indexed) text() string {
	out := fmt.Sprintf("%s: %s", x.Name, x.State)
	if x.Generation == "" {
		return out
	}
	switch {
	case x.Since != nil:
		out += " since " + stamped(x.Since)
	case x.State == string(owntable.Building):
		out += fmt.Sprintf(", %d rows read", x.Rows)
	}
	out += fmt.Sprintf(", generation %s, definition %s, %s %s", x.Generation, x.Hash, x.Kind, x.Place)
	if x.Applied != nil {
		out += ", applied until " + stamped(x.Applied)
	}
	if x.ByFunction {
		out += ", by a function"
	}
	if x.Model != "" && x.Model != x.Hash {
		out += "; the model has definition " + x.Model
	}
	return out
}

func stamped(t *time.Time) string { return t.UTC().Format(time.DateTime + " UTC") }

type retireCommand struct {
	data
	Model       string   `arg:"" help:"Name of a built-in model or path of a model file, without the derivations."`
	Derivations []string `arg:"" name:"derivation" help:"Names as projector status prints them."`
}

func (retireCommand) Help() string {
	return `A derivation that is taken out of a model stays in the catalog, and programs whose
model does not have it are refused, since they could be older ones. This notes that it
is gone: from then on, programs that still have it are refused instead. What it
derived stays in the rows, and nothing updates it. A month later the note goes too.

  projector retire gallery.yaml Album.sum --data ./data`
}

func (c *retireCommand) Run(p *program) error {
	s, err := p.existing(c.data, []string{c.Model}, system.Options{Writes: true})
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Models[0].Runner.Catalog.Retire(p.ctx, c.Derivations); err != nil {
		return err
	}
	fmt.Fprintf(p.stderr, "retired: %s\n", strings.Join(c.Derivations, ", "))
	return nil
}
