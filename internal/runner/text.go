package runner

import (
	"weir/internal/model"
	"weir/internal/store"
	"weir/internal/value"
)

// RowText returns a row in the form in which differences name rows.
func RowText(m *model.Model, r store.Ref) string {
	t := m.Table(r.Table)
	if t == nil {
		return r.String()
	}
	return r.Table + " " + string(value.AppendPlainItem(nil, t.Item(r.Key)))
}

// DescribeRow names a row in a form for people. A dead letter's id depends on it.
func (r *Runner) DescribeRow(ref store.Ref) string {
	if r.Model.Table(ref.Table) == nil {
		return ref.Table
	}
	return RowText(r.Model, ref)
}

// Nothing is printed in place of a missing value.
const Nothing = "nothing"

// ValueText returns a value in the form in which differences show values.
func ValueText(v value.Value) string {
	if v.IsMissing() {
		return Nothing
	}
	return string(value.AppendPlain(nil, v))
}
