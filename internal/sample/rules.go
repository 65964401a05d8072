package sample

import (
	"slices"

	"weir/internal/model"
)

// computed reports whether the model computes an attribute, so that commands must not give it.
func computed(a *model.Attribute) bool { return a.Computed != nil }

// made reports whether a new row gets the field without a command giving it.
func made(e *model.Entity, name string) bool {
	return slices.ContainsFunc(e.New, func(n model.New) bool { return n.Name == name })
}

// keepsKeys reports whether rows of the entity hold idempotency keys, and so are created
// together with rows of another entity.
func keepsKeys(m *model.Model, e *model.Entity) bool {
	return slices.ContainsFunc(m.Entities, func(o *model.Entity) bool { return o.Once != nil && o.Once.Of == e })
}

// ends reports whether the field holds the time at which a row expires.
func ends(e *model.Entity, name string) bool {
	if e.Expires != nil && e.Expires.Name == name {
		return true
	}
	return slices.ContainsFunc(e.Attributes, func(a *model.Attribute) bool {
		return a.Name == e.Table.TTL && a.Computed != nil && a.Computed.From.Name == name && a.Computed.Plus == 0 && a.Computed.By == nil
	})
}
