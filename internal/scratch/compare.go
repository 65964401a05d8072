package scratch

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"weir/internal/catalog"
	"weir/internal/deadletter"
	"weir/internal/memory"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/parallel"
	"weir/internal/projections"
	"weir/internal/projections/kinds"
	"weir/internal/runner"
	"weir/internal/search"
	"weir/internal/seq"
	"weir/internal/sorter"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

// Difference is a derived value that differs from that of the source rows. Its texts are
// for people, and stable: Row as runner.RowText writes it, Want and Have as runner.ValueText does.
type Difference struct {
	Derivation string `json:"derivation"`
	Row        string `json:"row"`
	Want       string `json:"want"`
	Have       string `json:"have"`
}

// Shown returns the difference as it may leave weir: without values that the model hides.
func (d Difference) Shown(m *model.Model) Difference {
	if m.HidesValuesOf(d.Derivation) {
		d.Want, d.Have = model.HiddenText, model.HiddenText
	}
	return d
}

// Nothing is printed in place of a missing value.
const Nothing = runner.Nothing

// Unshown is a correct gap, which is no Difference: a distinct over its max, which its row
// therefore does not show, or a contribution that a row cannot make.
type Unshown struct {
	Derivation string `json:"derivation"`
	Row        string `json:"row"`
	Why        string `json:"cannotBeComputed"`
}

// Verify derives everything again from the rows of a store, and yields where the store says something else. Rows are read once.
type Verify struct {
	Model  *model.Model
	Store  store.Store
	Index  search.Index     // nil leaves search out
	Now    func() time.Time // nil is time.Now
	Dir    string           // for temporary files; "" is that of the system
	Memory memory.Size      // that it may use
	// InMemory has the Engine's store in memory, for tests.
	InMemory bool
	// Progress, if set, is called with the number of rows read so far.
	Progress func(rows int)

	Checked int       // derived values compared
	Passing int       // values that differed in the first pass of the last Twice, and not in the same way in the second
	Unshown []Unshown // values of the last Run that cannot be computed or derived
	// NotCompared is how many values rows keep of a row that is gone, by derivation, of which nothing else tells the value.
	NotCompared map[string]int
	// Missing has the targets that the last Run found missing, which is no difference.
	Missing []projections.Missing
}

// Of returns a Verify for the derived data of one part of a system.
func Of(s *system.System, p *system.Part) *Verify {
	dir, size := s.Room()
	return &Verify{Model: p.Model, Store: s.Store, Index: p.Runner.Index, Now: s.Now, Dir: dir, Memory: size}
}

// Run calls yield for every difference, in the order of derivations and rows.
func (v *Verify) Run(ctx context.Context, yield func(Difference)) (err error) {
	v.Checked, v.Missing, v.NotCompared = 0, nil, map[string]int{}
	p, err := v.beginPass(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.removeFiles()) }()
	if err := v.addIndexed(ctx, p.all); err != nil {
		return err
	}
	targets := projections.MissingTargets{}
	err = p.deriveAndSort(ctx, func(r *reader) rows { return r }, func(t *model.Table, some []value.Item) error {
		for _, row := range some {
			targets.AddRow(t.Classify(row), row)
		}
		return v.addDocuments(ctx, t, some, p.all)
	})
	if err != nil {
		return err
	}
	v.Missing = targets.Missing()
	return v.compareSides(p.all, yield)
}

// rows reads the values of rows.
type rows interface {
	yieldRow(t *model.Table, row value.Item, give func(Said, string)) // of an application's table
	yieldOwn(row value.Item, give func(Said, string))                 // of weir's own table
	name(of string) (derivation, part string)                         // how it calls an entity, or an attribute of one
}

// pass reads the rows of a store once, and derives from them.
type pass struct {
	*Verify
	engine  *Engine
	catalog owntable.CatalogRow
	left    map[*model.Entity][]string // on rows that weir makes, by retired derivations
	all     *sorter.Sorter             // the values of rows of both stores
}

// beginPass begins a pass. End it.
func (v *Verify) beginPass(ctx context.Context) (*pass, error) {
	if v.Unshown = nil; v.Now == nil {
		v.Now = time.Now
	}
	of := catalog.New(v.Model, v.Store, v.Now, catalog.Options{})
	c, err := of.Row(ctx)
	if err != nil {
		return nil, err
	}
	left, err := of.LeftAttributes(ctx, c)
	if err != nil {
		return nil, err
	}
	e, err := New(ctx, v.Model, Options{Dir: v.Dir, Memory: v.Memory, Now: v.Now, InMemory: v.InMemory})
	if err != nil {
		return nil, err
	}
	all := sorter.New(int(v.Memory.Share(8*memory.MB)), func() (sorter.File, error) { return os.CreateTemp(e.dir, "said-") })
	return &pass{v, e, c, left, all}, nil
}

// removeFiles removes the files of the pass.
func (p *pass) removeFiles() error { return errors.Join(p.all.Close(), p.engine.Close()) }

// deriveAndSort sorts the values of the rows of the store, as is has them read, and those that the engine derives from them. Each page of
// an application's rows is given to use.
func (p *pass) deriveAndSort(ctx context.Context, is func(*reader) rows, use func(*model.Table, []value.Item) error) error {
	read, r := 0, newReader(p.Model, p.catalog, p.Now(), false)
	r.left = p.left
	says := is(r)
	err := p.scanRows(ctx, p.Store, says, p.all, func(t *model.Table, some []value.Item) error {
		if read += len(some); p.Progress != nil {
			p.Progress(read)
		}
		return errors.Join(use(t, some), p.engine.Add(ctx, t, some))
	})
	if err != nil {
		return err
	}
	s, err := p.engine.Store(ctx)
	if err != nil {
		return err
	}
	if err := p.noteRefused(ctx, r, says); err != nil {
		return err
	}
	return p.scanRows(ctx, s, is(newReader(p.Model, p.catalog, p.Now(), true)), p.all, noUse)
}

// noUse has no use for rows.
func noUse(*model.Table, []value.Item) error { return nil }

// Meanwhile is how long derived values may take to follow a write.
const Meanwhile = 5 * time.Second

// Twice derives while others write and derive. If something differs, it derives once more
// after Meanwhile, and yields values that differ in the same way both times: that is no write that is
// still on its way. It compares at most so many differences, 0 for all; more reports that the
// first time found others.
func (v *Verify) Twice(ctx context.Context, most int, yield func(Difference)) (more bool, err error) {
	first := map[Difference]bool{}
	v.Passing = 0
	err = v.Run(ctx, func(d Difference) {
		if most > 0 && len(first) == most {
			more = true
			return
		}
		first[d] = true
	})
	if err != nil || len(first) == 0 {
		return false, err
	}
	if err := parallel.Sleep(ctx, Meanwhile); err != nil {
		return false, err
	}
	v.Passing = len(first)
	return more, v.Run(ctx, func(d Difference) {
		if first[d] {
			v.Passing--
			yield(d)
		}
	})
}

// scanRows adds the values of the rows of a store, and gives the rows of the application's tables to use.
func (v *Verify) scanRows(ctx context.Context, s store.Store, says rows, all *sorter.Sorter, use func(*model.Table, []value.Item) error) error {
	var failed error
	give := func(d Said, side string) {
		if err := addSaid(all, d, side); err != nil {
			failed = err
		}
	}
	for _, t := range v.Model.Tables {
		for rows, err := range store.Pages(ctx, s, store.Query{Table: t.Name}) {
			if err != nil {
				return fmt.Errorf("reading %s: %w", t.Name, err)
			}
			if err := use(t, rows); err != nil {
				return err
			}
			for _, row := range rows {
				says.yieldRow(t, row, give)
			}
		}
	}
	for row, err := range store.EachRow(ctx, s, store.Query{Table: owntable.TableName}) {
		if err != nil {
			return fmt.Errorf("reading %s: %w", owntable.TableName, err)
		}
		says.yieldOwn(row, give)
	}
	return failed
}

// noteRefused notes values that the engine could not derive or show, and adds the values that rows therefore lack.
func (p *pass) noteRefused(ctx context.Context, r *reader, says rows) error {
	return p.engine.run.EachDeadLetter(ctx, func(d deadletter.Letter) error {
		if d.Kind == deadletter.Record { // its row does not fit with the values that are derived on it
			whole, err := p.engine.run.DeadByID(ctx, d.ID)
			if err != nil {
				return err
			}
			rec := whole.ChangeRecord()
			if t := p.Model.Table(rec.Table); t != nil {
				key, _ := t.KeyOf(rec.Keys)
				d.Row, d.Target = store.Ref{Table: t.Name, Key: key}, ""
			}
		}
		row := runner.RowText(p.Model, d.Row)
		of := strings.TrimSuffix(strings.TrimSuffix(d.Target, row), " of ")
		var lacks, said []string
		if t := p.Model.Table(d.Row.Table); t != nil && d.Kind != deadletter.Image {
			for _, e := range t.Entities {
				if !e.CanBe(d.Row) {
					continue
				}
				of = cmp.Or(of, e.Name)
				lacks = append(lacks, e.Name)
				lacks = append(lacks, seq.Map(r.derived[e], func(name string) string { return e.Name + "." + name })...)
			}
		}
		for _, l := range lacks {
			if strings.Contains(d.Reason, l+":") { // a letter may name several
				said = append(said, l)
			}
			derivation, part := says.name(l)
			if err := addSaid(p.all, Said{Derivation: derivation, Row: row, Part: part}, lacking); err != nil {
				return err
			}
		}
		if said == nil {
			said = append(said, strings.TrimSpace(of))
		}
		for _, l := range said {
			of := d
			if _, part, ok := strings.Cut(d.Reason, l+": "); ok {
				part, _, _ = strings.Cut(part, "; ")
				of.Reason = "cannot be computed: " + part
			}
			p.Unshown = append(p.Unshown, Unshown{Derivation: l, Row: row, Why: p.Model.ShownText(explainLetter(&of))})
		}
		return nil
	})
}

// explainLetter says why something is not derived or shown.
func explainLetter(d *deadletter.Letter) string {
	switch d.Kind {
	case deadletter.Image:
		return "cannot be derived: " + d.Reason
	case deadletter.Number, deadletter.Status:
		return d.Reason
	}
	return "cannot be shown: " + d.Reason
}

// The state of a document that is as its row says, and of another.
const (
	inIndex   = "in the index"
	otherwise = "in the index with other content"
)

// addIndexed adds which documents the indexes have.
func (v *Verify) addIndexed(ctx context.Context, all *sorter.Sorter) error {
	if v.Index == nil {
		return nil
	}
	for _, s := range v.Model.Searches {
		name := kinds.Index(v.Model, s)
		for q := (search.Query{Index: name, Limit: 1000}); ; {
			hits, err := v.Index.Search(ctx, q)
			if err != nil {
				return fmt.Errorf("reading index %s: %w", name, err)
			}
			for _, h := range hits {
				if err := addSaid(all, v.saidByIndex(name, h.ID, inIndex), built); err != nil {
					return err
				}
				q.After = h.After
			}
			if len(hits) < q.Limit {
				break
			}
		}
	}
	return nil
}

// addDocuments adds the documents of rows, and those that the indexes have with other content. A document that no index can hold is
// led to by no row.
func (v *Verify) addDocuments(ctx context.Context, t *model.Table, rows []value.Item, all *sorter.Sorter) error {
	if v.Index == nil {
		return nil
	}
	var docs []search.Document
	for _, row := range rows {
		key, ok := t.KeyOf(row)
		if !ok {
			continue
		}
		c := projections.Change{Table: t, Row: store.Ref{Table: t.Name, Key: key}, New: row, Is: t.Classify(row)}
		docs = append(docs, seq.Flat(kinds.All(), func(k runner.Kind) []search.Document { return k.Documents(v.Model, &c) })...)
	}
	docs = slices.DeleteFunc(docs, func(d search.Document) bool {
		err := d.Check()
		if err != nil {
			name, row := v.documentSource(d.Index, d.ID)
			v.Unshown = append(v.Unshown, Unshown{Derivation: name, Row: row, Why: v.Model.ShownText("cannot be derived: " + err.Error())})
		}
		return err != nil
	})
	if len(docs) == 0 {
		return nil
	}
	held, err := v.Index.Holds(ctx, docs)
	if err != nil {
		return fmt.Errorf("reading the indexes: %w", err)
	}
	for i, d := range docs {
		err := addSaid(all, v.saidByIndex(d.Index, d.ID, inIndex), wanted)
		if err == nil && !held[i] {
			err = addSaid(all, v.saidByIndex(d.Index, d.ID, otherwise), other)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// documentSource returns the derivation and the row of a document.
func (v *Verify) documentSource(index, id string) (derivation, row string) {
	s := v.Model.Searches[slices.IndexFunc(v.Model.Searches, func(s *model.Search) bool { return kinds.Index(v.Model, s) == index })]
	row = id
	if key, err := search.ParseID(id); err == nil {
		row = runner.RowText(v.Model, store.Ref{Table: s.Of.Table.Name, Key: key})
	}
	return "search " + s.Name, row
}

// saidByIndex is an index's value of a document.
func (v *Verify) saidByIndex(index, id, what string) Said {
	derivation, row := v.documentSource(index, id)
	return Said{derivation, row, "", what}
}

// addSaid adds the values of a side. Of several values of one thing on one side the last counts.
func addSaid(all *sorter.Sorter, d Said, side string) error {
	return all.Add([]byte(strings.Join([]string{d.Derivation, ended.Replace(d.Row), ended.Replace(d.Part), side}, "\x00")), []byte(d.Value))
}

// ended keeps the ends of texts apart from their content.
var ended, asWas = strings.NewReplacer("\x00", "\x01\x01", "\x01", "\x01\x02"), strings.NewReplacer("\x01\x01", "\x00", "\x01\x02", "\x01")

// namedDifference is a difference as people read it.
func (v *Verify) namedDifference(derivation, row, part, want, have string) Difference {
	part, _, _ = strings.Cut(part, unsaid)
	field, of, _ := strings.Cut(row, "|")
	switch {
	case derivation == "follower":
		derivation, row, part = field+" followers", part, ""
		if want == Nothing || have == Nothing {
			want, have = describeEntry(want), describeEntry(have)
		}
	case derivation == "followed" && part != "":
		derivation, row, part = field+" followed", part, ""
	case derivation == "followed":
		derivation, row = field+" as followed", of
	case strings.HasPrefix(derivation, "search "):
		const none = "not in the index"
		want, have = strings.Replace(want, Nothing, none, 1), strings.Replace(have, Nothing, none, 1)
	}
	if ref, ok := owntable.RowOf(row); ok && v.Model.Table(ref.Table) != nil {
		row = runner.RowText(v.Model, ref)
	}
	return Difference{Derivation: derivation, Row: strings.TrimSpace(row + " " + part), Want: want, Have: have}
}

// describeEntry says whether a row is on the list of the value that it follows, by its place there.
func describeEntry(place string) string {
	if place == Nothing {
		return "not on the list"
	}
	return "on the list"
}

// compareSides yields where the two sides differ.
func (v *Verify) compareSides(all *sorter.Sorter, yield func(Difference)) error {
	var kept, last struct{ of, value string } // of the followed row that was met last: the value, or the last one
	return eachSaid(all, func(d Said, said map[string]string) {
		want, wants := said[wanted]
		have, has := said[built]
		if !has {
			have, has = said[left]
		}
		if otherwise := said[other]; has && otherwise != "" {
			have = otherwise
		}
		_, lacks := said[lacking]
		switch {
		case lacks && !wants: // of which Unshown says why
			return
		case d.Derivation == "followed" && d.Part == "":
			kept.of, kept.value = d.Row, cmp.Or(want, Nothing)
		case d.Derivation == "followed" && d.Part == keeps:
			last.of, last.value = d.Row, want
			return
		case d.Derivation == "followed" && kept.of == d.Row:
			want, wants = kept.value, true
		case d.Derivation == "followed" && strings.HasSuffix(d.Part, keeps) && last.of == d.Row:
			want, wants = last.value, true
		case strings.HasSuffix(d.Part, keeps) && !wants: // of a row that is gone, whose last value is not known
			v.NotCompared[v.namedDifference(d.Derivation, d.Row, d.Part, want, have).Derivation]++
			return
		case d.Derivation == "followed":
			want, wants = Nothing, true
		case d.Derivation == "follower" && !wants: // which the next value takes away
			return
		}
		v.Checked++
		if !wants {
			want = Nothing
		}
		if !has {
			have = Nothing
		}
		if _, shown := said[built]; want == have || !wants && !shown {
			return
		}
		yield(v.namedDifference(d.Derivation, d.Row, d.Part, want, have))
	})
}

// eachSaid yields, in order, the values of each thing, by side.
func eachSaid(all *sorter.Sorter, yield func(d Said, said map[string]string)) error {
	in, err := all.Sorted()
	if err != nil {
		return err
	}
	var at []byte
	said := map[string]string{}
	end := func() {
		if at != nil {
			d := strings.SplitN(string(at), "\x00", 3)
			yield(Said{Derivation: d[0], Row: asWas.Replace(d[1]), Part: asWas.Replace(d[2])}, said)
		}
	}
	for {
		key, val, err := in.Next()
		if err == io.EOF {
			end()
			return nil
		}
		if err != nil {
			return err
		}
		name, side := key[:len(key)-2], string(key[len(key)-1:])
		if !bytes.Equal(name, at) || at == nil {
			end()
			at = append(at[:0:0], name...)
			clear(said)
		}
		said[side] = string(val)
	}
}
