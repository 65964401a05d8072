package deploy

import (
	"fmt"
	"slices"
	"strings"

	"weir/internal/store"
)

// viaService are the services that use a key in the place of a process.
var viaService = map[Resource]string{DataKey: "dynamodb", QueueKey: "sqs"}

const (
	commandBatch      = 100
	commandVisibility = 180 // seconds: six times the function's time, as Lambda asks
)

// searches reports whether a model has searches.
// A plan without searches has no parameter for a cluster, and no function that needs one.
func (p *Plan) searches() bool {
	return slices.ContainsFunc(p.Models, func(m *Model) bool { return m.Searches })
}

// names are the names of the models, in the order given.
func (p *Plan) names() (out []string) {
	for _, m := range p.Models {
		out = append(out, m.Name)
	}
	return out
}

// about is a description of the template for lists of stacks.
func (p *Plan) about() string {
	return "derives " + strings.Join(p.names(), ", ")
}

// head is the comment that a template begins with.
// It has no time and no version, so that a template changes only when what it makes does.
func (p *Plan) head(format string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Made by projector deploy template %s --format %s. Make it again when the\n# model changes, and read the difference.\n", strings.Join(p.names(), " "), format)
	for _, m := range p.Models {
		if m.File != "" {
			fmt.Fprintf(&b, "# The packages of the functions hold the file of model %s as %s, beside the program bootstrap.\n", m.Name, m.File)
		}
	}
	return b.String()
}

// keyAttributes are the attributes of a table's keys and of its indexes', by name.
// DynamoDB refuses a definition of an attribute that no key uses, so these are all that a table declares.
func keyAttributes(t *store.Table) (out []store.KeyAttr) {
	add := func(k store.KeyAttr) {
		if k.Name != "" && !slices.ContainsFunc(out, func(has store.KeyAttr) bool { return has.Name == k.Name }) {
			out = append(out, k)
		}
	}
	add(t.Key.Partition)
	add(t.Key.Sort)
	for _, ix := range t.Indexes {
		add(ix.Key.Partition)
		add(ix.Key.Sort)
	}
	slices.SortFunc(out, func(a, b store.KeyAttr) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// projection is the ProjectionType of an index.
func projection(ix *store.Index) string {
	if ix.KeysOnly {
		return "KEYS_ONLY"
	}
	return "ALL"
}
