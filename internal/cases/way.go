package cases

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"weir/internal/deadletter"
	"weir/internal/events"
	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/query"
	"weir/internal/reader"
	"weir/internal/scratch"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

// world is a store in which a case comes to pass in one way.
type world struct {
	dir  string
	s    *system.System
	part *system.Part
	// delivered are the records that were written, for those who get them again.
	delivered []reader.Page
}

func newWorld(ctx context.Context, m *model.Model) (w *world, err error) {
	w = &world{}
	if w.dir, err = os.MkdirTemp("", "weir-test-"); err != nil {
		return nil, err
	}
	if w.s, err = system.Open(ctx, filepath.Join(w.dir, "data"), []*model.Model{m}, system.Options{Writes: true, InMemory: true}); err == nil {
		w.part = w.s.Models[0]
		if err = w.s.Start(ctx); err == nil {
			err = w.s.Reach(ctx, func(system.Filling) {})
		}
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *world) close() error {
	var err error
	if w.s != nil {
		err = w.s.Close()
	}
	return errors.Join(err, os.RemoveAll(w.dir))
}

// readStreams reads the records of the streams above a position.
func (w *world) readStreams(ctx context.Context, from events.Position) (out []reader.Page, err error) {
	for _, t := range w.part.Model.AllTables() {
		shards, err := w.s.Store.Shards(ctx, t.Name)
		if err != nil {
			return nil, err
		}
		for _, shard := range shards {
			for at := from; ; {
				page, err := w.s.Store.Read(ctx, t.Name, shard.ID, at, 1000)
				if err != nil {
					return nil, err
				}
				if len(page.Records) == 0 {
					break
				}
				at = page.Records[len(page.Records)-1].Position
				out = append(out, reader.Page{Table: t, Shard: shard.ID, Records: page.Records})
			}
		}
	}
	return out, nil
}

// write writes the images of records as an application does: rows that change keep the values that weir has derived on them.
func (w *world) write(ctx context.Context, records []events.Record) error {
	outcomes, err := w.s.Store.Write(ctx, seq.Map(records, func(r events.Record) store.Write {
		key, _ := w.part.Model.Table(r.Table).KeyOf(r.Keys)
		out := store.Write{Ref: store.Ref{Table: r.Table, Key: key}, Origin: &store.Origin{Time: r.Time, Position: r.Origin, Expired: r.Expired}}
		switch {
		case r.New == nil:
			out.Delete = true
		case r.Old == nil:
			out.Put = r.New
		default:
			out.Ops = store.Difference(r.Old, r.New)
		}
		return out
	}))
	for i := 0; err == nil && i < len(outcomes); i++ {
		err = outcomes[i].Err
	}
	return err
}

// catchUp applies the records that are in the streams.
func (w *world) catchUp(ctx context.Context) error {
	done := make(chan struct{})
	close(done)
	if err := (&reader.Follower{Runner: w.part.Runner}).CatchUp(ctx, done); err != nil {
		return err
	}
	return w.s.Show(ctx)
}

// writeRecords writes records, so many at a time, and applies each lot before the next is written.
func (w *world) writeRecords(ctx context.Context, records []events.Record, lot int) error {
	for some := range slices.Chunk(records, max(1, lot)) {
		if err := w.write(ctx, some); err != nil {
			return err
		}
		if err := w.catchUp(ctx); err != nil {
			return err
		}
	}
	return nil
}

// comeAgain is writeRecords, and after each lot all records come again that came before, as from a reader that was overtaken.
func (w *world) comeAgain(ctx context.Context, records []events.Record, lot int) error {
	for some := range slices.Chunk(records, max(1, lot)) {
		from := w.s.Store.Tip().Seen
		if err := w.write(ctx, some); err != nil {
			return err
		}
		pages, err := w.readStreams(ctx, from)
		if err != nil {
			return err
		}
		w.delivered = append(w.delivered, pages...)
		if err := w.catchUp(ctx); err != nil {
			return err
		}
		if err := (&reader.Follower{Runner: w.part.Runner}).NewStepper().ApplyAgain(ctx, time.Now(), w.delivered); err != nil {
			return err
		}
	}
	return w.catchUp(ctx)
}

// rebuild derives everything again from the rows, and fills the indexes again.
func (w *world) rebuild(ctx context.Context) error {
	b := w.part.Builder()
	if b.Again, b.Asked = true, w.part.Runner.Now(); len(b.Names) > 0 {
		_, err := b.Run(ctx)
		if err = errors.Join(err, b.Release(ctx)); err != nil {
			return err
		}
	}
	if err := w.catchUp(ctx); err != nil {
		return err
	}
	if len(w.part.Model.Searches) > 0 {
		if err := w.s.IndexAgain(ctx, w.part, func(system.Filling) {}); err != nil {
			return err
		}
	}
	return w.s.Show(ctx)
}

// answer is the answer to a question, line by line.
func (w *world) answer(ctx context.Context, a ask, parse func(command string) (Query, error)) (string, error) {
	if a.command == "" {
		return w.answerRows(ctx, a.want)
	}
	q, err := parse(a.command)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	for page := (query.Page{Limit: min(q.Limit, query.MaxLimit)}); ; {
		res, err := w.part.Query.Run(ctx, q.Name, q.Params, page)
		if err != nil {
			return "", err
		}
		for _, row := range res.Items {
			out.Write(append(value.AppendPlainItem(nil, query.Select(row, q.Only)), '\n'))
		}
		left := q.Limit - bytes.Count(out.Bytes(), []byte("\n"))
		if page.Cursor = res.Cursor; res.Cursor == "" || q.Limit > 0 && left <= 0 {
			return out.String(), nil
		}
		if q.Limit > 0 {
			page.Limit = min(left, query.MaxLimit)
		}
	}
}

// answerRows answers a block of rows and dead letters: each row with the attributes that the block names, or with all if it names
// only those of the key; and then the dead letters.
func (w *world) answerRows(ctx context.Context, block string) (string, error) {
	var out bytes.Buffer
	for line := range strings.Lines(block) {
		it, err := ingest.ReadItem([]byte(line))
		if err != nil {
			return "", err
		}
		if !it.Get("letter").IsMissing() {
			continue
		}
		name, fields := it.Get("entity").Text(), it.Get("item").Item()
		e := w.part.Model.Entity(name)
		if e == nil {
			return "", fmt.Errorf("the model has no entity %q: %s", name, strings.TrimSpace(line))
		}
		key, ok := e.Key(fields.Get)
		if !ok {
			return "", fmt.Errorf("the item lacks part of the key, which has %s: %s", strings.Join(e.KeyNames(), ", "), strings.TrimSpace(line))
		}
		is, err := w.s.Store.Get(ctx, []store.Ref{{Table: e.Table.Name, Key: key}})
		if err != nil {
			return "", err
		}
		out.Write(rowLine(w.part.Model, e, fields, is[0]))
	}
	letters, err := w.letters(ctx)
	return out.String() + letters, err
}

// rowLine is a line of the block: the fields of the row that others name, in their order.
func rowLine(m *model.Model, e *model.Entity, fields, row value.Item) []byte {
	var item value.Item
	all := len(fields) == len(e.KeyNames())
	for _, f := range fields {
		v := f.Value
		if row != nil && !slices.Contains(e.KeyNames(), f.Name) {
			v = e.Field(f.Name).Get(m.Shown(e, row))
		}
		if !v.IsMissing() && (row != nil || slices.Contains(e.KeyNames(), f.Name)) {
			item = append(item, value.Attr{Name: f.Name, Value: v})
		}
	}
	for _, a := range m.Shown(e, row) {
		isKey := slices.ContainsFunc(e.Table.KeyAttrs(), func(k store.KeyAttr) bool { return k.Name == a.Name })
		if all && !isKey && !owntable.IsOurs(a.Name) && item.Get(a.Name).IsMissing() {
			item = append(item, a)
		}
	}
	out := fmt.Appendf(nil, `{"entity":%q,"item":`, e.Name)
	out = value.AppendPlainItem(out, item)
	if row == nil {
		out = append(out, `,"gone":true`...)
	}
	return append(out, "}\n"...)
}

// letters are the dead letters, a line for each.
func (w *world) letters(ctx context.Context) (string, error) {
	var lines []string
	err := w.part.Runner.EachDeadLetter(ctx, func(d deadletter.Letter) error {
		d = d.Shown(w.part.Model)
		line := []byte(`{"letter":`)
		line = value.AppendPlain(line, value.OfString(string(d.Kind)))
		line = value.AppendPlain(append(line, `,"of":`...), value.OfString(d.Target))
		line = value.AppendPlain(append(line, `,"reason":`...), value.OfString(d.Reason))
		lines = append(lines, string(line)+"}\n")
		return nil
	})
	slices.Sort(lines)
	return strings.Join(lines, ""), err
}

// verify derives everything again from the rows, and returns a line for each value that differs.
func (w *world) verify(ctx context.Context) (string, error) {
	v := scratch.Of(w.s, w.part)
	v.InMemory, v.Dir = true, w.dir
	var out strings.Builder
	err := v.Run(ctx, func(d scratch.Difference) {
		d = d.Shown(w.part.Model)
		fmt.Fprintf(&out, "%s of %s: is %s, should be %s\n", d.Derivation, d.Row, d.Have, d.Want)
	})
	return out.String(), err
}
