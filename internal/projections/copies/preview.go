package copies

import (
	"weir/internal/model"
	"weir/internal/runner"
)

// Preview has the dry run say of each copy what differs, as rows are compared in place.
func (Kind) Preview(p *runner.Previewing) runner.Preview {
	if p.Build == model.BuildInPlace {
		for _, rule := range p.Model.Rows {
			if rule.Subscribers == nil && len(rule.Keep) == 0 {
				p.Says.Tells(rule.Name)
			}
		}
	}
	return runner.BasePreview{}
}
