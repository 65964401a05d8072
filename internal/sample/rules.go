package sample

import (
	"slices"

	"weir/internal/model"
)

// computed reports whether commands leave an attribute to the model.
func computed(a *model.Attribute) bool { return a.Computed != nil }

// made reports whether a new row gets the field by itself.
func made(e *model.Entity, name string) bool {
	return slices.ContainsFunc(e.New, func(n model.New) bool { return n.Name == name })
}

// keepsKeys reports whether rows of the entity come with others by themselves.
func keepsKeys(m *model.Model, e *model.Entity) bool {
	return slices.ContainsFunc(m.Entities, func(o *model.Entity) bool { return o.Once != nil && o.Once.Of == e })
}

// ends reports whether a row is gone after the time in the field.
func ends(e *model.Entity, name string) bool {
	if e.Expires != nil && e.Expires.Name == name {
		return true
	}
	return slices.ContainsFunc(e.Attributes, func(a *model.Attribute) bool {
		return a.Name == e.Table.TTL && a.Computed != nil && a.Computed.From.Name == name && a.Computed.Plus == 0 && a.Computed.By == nil
	})
}
