package query

import (
	"context"
	"maps"
	"slices"

	"weir/internal/model"
	"weir/internal/value"
)

// Rows of an entity may have been written by others, who put values into keys as
// they are, and through weir, which escapes what a person typed. They differ only
// where a value holds a sign that stands between the parts of its key. Then the
// answer is the rows of both: first those with the value as it is, then those with
// the value escaped.

// both answers with the rows of both ways to write the parameters in keys.
func (r *run) both(ctx context.Context, from place) ([]value.Item, place, error) {
	escaped, differ := r.plan.escaped(r.args)
	if from.escaped {
		r.args, from.escaped = escaped, false
		return marked(r.page(ctx, from))
	}
	items, at, err := r.page(ctx, from)
	if err != nil || !differ || !at.zero() || r.plan.Single && len(items) > 0 {
		return items, at, err
	}
	if r.want -= len(items); r.want <= 0 || r.spent() {
		return items, place{escaped: true}, nil
	}
	r.args = escaped
	more, at, err := marked(r.page(ctx, place{}))
	return append(items, more...), at, err
}

// marked is a place among the rows with escaped values.
func marked(items []value.Item, at place, err error) ([]value.Item, place, error) {
	at.escaped = !at.zero()
	return items, at, err
}

// escaped is the arguments as weir writes them into keys; differ is false when that
// is as they are.
func (p *plan) escaped(args map[string]value.Value) (out map[string]value.Value, differ bool) {
	for _, st := range p.steps {
		for _, b := range slices.Concat(st.With, st.Any) {
			v, given := args[b.Param]
			t := st.template(b.Field.Name)
			if b.Param == "" || !given || t == nil {
				continue
			}
			if e := escape(t, v); !value.Equal(e, v) {
				if !differ {
					out, differ = maps.Clone(args), true
				}
				out[b.Param] = e
			}
		}
	}
	return out, differ
}

// template is that of the key which holds a name as it was given, nil where none
// does.
func (s *step) template(name string) *model.Template {
	for _, k := range slices.Concat([]keyPart{s.partition, s.sort}, s.primary) {
		if k.tmpl != nil && k.name == "" && slices.Contains(k.names(), name) {
			if slices.Contains(k.typed, name) {
				return nil // escaped already
			}
			return k.tmpl
		}
	}
	return nil
}

// escape is a text, or a list of them, escaped for a template.
func escape(t *model.Template, v value.Value) value.Value {
	switch v.Kind() {
	case value.String:
		return value.OfString(t.Escape(v.Text()))
	case value.List:
		var vs []value.Value
		for _, e := range v.Elements() {
			vs = append(vs, escape(t, e.Value))
		}
		return value.OfList(vs...)
	}
	return v
}
