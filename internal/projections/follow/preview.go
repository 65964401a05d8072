package follow

import (
	"context"

	"weir/internal/model"
	"weir/internal/projections"
	"weir/internal/runner"
	"weir/internal/store"
	"weir/internal/value"
)

// preview says which copies will show another value of what they follow, of as many as
// runner.PreviewTargets.
type preview struct {
	runner.BasePreview
	*runner.Previewing
	tells map[*model.Follow]string // the names of what is new or changed
	rows  []following
}

// following is a row that exists, with what it will follow.
type following struct {
	row store.Ref
	projections.Following
}

// Preview returns the kind's part in a dry run.
func (Kind) Preview(p *runner.Previewing) runner.Preview {
	v := &preview{Previewing: p, tells: map[*model.Follow]string{}}
	if p.Build != model.BuildInPlace {
		return v
	}
	for _, f := range p.Model.Follows {
		if name := f.Rule.Name + "." + f.Attr; len(f.Rule.Keep) == 0 && p.Says.Tells(name) {
			v.tells[f] = name
		}
	}
	return v
}

// Add takes in what the copies of a row will follow, of at most runner.PreviewTargets copies. Rows that
// keep their history are left out: nothing follows there.
func (v *preview) Add(row *projections.Change) {
	if row.Is == nil || len(v.tells) == 0 {
		return
	}
	for _, rule := range row.Is.Rules {
		if len(rule.Keep) > 0 {
			continue
		}
		var none *projections.Faults
		p, ok := none.Make(row, rule, row.New, false)
		for _, f := range p.Follows {
			if ok && v.tells[f.Follow] != "" && len(v.rows) < runner.PreviewTargets {
				v.rows = append(v.rows, following{p.Row, f})
			}
		}
	}
}

// readAtOnce is how many copies are read together.
const readAtOnce = 50

// End compares what copies show with what they will follow, 50 at a time. A copy that keeps the last
// value of a row that is gone is left out, because no row tells that value.
func (v *preview) End(ctx context.Context) error {
	for len(v.rows) > 0 {
		some := v.rows[:min(readAtOnce, len(v.rows))]
		v.rows = v.rows[len(some):]
		var refs []store.Ref
		for _, f := range some {
			refs = append(refs, f.row, f.Of)
		}
		got, err := v.Get(ctx, refs)
		if err != nil {
			return err
		}
		for i, f := range some {
			row, of, will := got[2*i], got[2*i+1], value.Value{}
			switch exists := v.Model.Table(f.Of.Table).Classify(of) == f.Source; {
			case exists:
				will = ValueOf(f.Source, f.Field, of)
			case f.Keep: // no row tells the last value
				continue
			}
			v.Row(v.tells[f.Follow], f.row, row.Get(f.Attr), will)
		}
	}
	return nil
}
