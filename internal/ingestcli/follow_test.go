package ingestcli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"weir/internal/ingest"
	"weir/internal/model"
	"weir/internal/query"
	"weir/internal/reader"
	again "weir/internal/scratch"
	"weir/internal/store"
	"weir/internal/system"
	"weir/internal/value"
)

// rows writes rows as an application does that knows nothing of weir: each line of
// the file is {TABLE: {the whole row}}, or {TABLE: {the key}, "set": {attributes}}, or
// {TABLE: {the key}, "delete": true}.
//
//	rows MODEL FILE
func rows() {
	act(os.Args[1], func(ctx context.Context, s *system.System, p *system.Part) error {
		f, err := os.Open(os.Args[2])
		if err != nil {
			return err
		}
		defer f.Close()
		for lines := bufio.NewScanner(f); lines.Scan(); {
			w, err := rowOf(p.Model, lines.Bytes())
			if err != nil {
				return fmt.Errorf("%s: %w", lines.Text(), err)
			}
			out, err := s.Store.Write(ctx, []store.Write{w})
			if err == nil {
				err = out[0].Err
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

func rowOf(m *model.Model, line []byte) (store.Write, error) {
	var parts map[string]json.RawMessage
	if err := json.Unmarshal(line, &parts); err != nil {
		return store.Write{}, err
	}
	var w store.Write
	for name, raw := range parts {
		t := m.Table(name)
		if t == nil {
			continue
		}
		row, err := ingest.ReadItem(raw)
		if err != nil {
			return w, err
		}
		key, ok := t.KeyOf(row)
		if !ok {
			return w, fmt.Errorf("no key of %s", name)
		}
		w.Ref, w.Put = store.Ref{Table: name, Key: key}, row
	}
	if raw, ok := parts["set"]; ok {
		attrs, err := ingest.ReadItem(raw)
		if err != nil {
			return w, err
		}
		w.Put = nil
		for _, a := range attrs {
			w.Ops = append(w.Ops, store.Op{Kind: store.Set, Attr: a.Name, Value: a.Value})
		}
	}
	if _, ok := parts["delete"]; ok {
		w.Put, w.Delete = nil, true
	}
	return w, nil
}

// follow does what projector run does, until everything in the streams is applied,
// says what verify finds wrong, and answers a query.
//
//	follow MODEL QUERY KEY=VALUE…
func follow() {
	act(os.Args[1], func(ctx context.Context, s *system.System, p *system.Part) error {
		done := make(chan struct{})
		close(done)
		f := reader.Follower{Runner: p.Runner}
		if err := f.CatchUp(ctx, done); err != nil {
			return err
		}
		if err := again.Of(s, p).Run(ctx, func(d again.Difference) { fmt.Printf("%+v\n", d) }); err != nil {
			return err
		}
		params := map[string]string{}
		for _, kv := range os.Args[3:] {
			k, v, _ := strings.Cut(kv, "=")
			params[k] = v
		}
		page, err := p.Query.Run(ctx, os.Args[2], params, query.Page{})
		if err != nil {
			return err
		}
		for _, row := range page.Items {
			fmt.Println(string(value.AppendPlainItem(nil, row)))
		}
		return nil
	})
}

func act(name string, do func(context.Context, *system.System, *system.Part) error) {
	ctx := context.Background()
	m, err := model.Load(name)
	if err == nil {
		var s *system.System
		if s, err = openWorld("data", m); err == nil {
			err = do(ctx, s, s.Models[0])
			s.Close()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
