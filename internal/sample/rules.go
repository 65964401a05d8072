package sample

import "weir/internal/model"

// computed reports whether commands leave an attribute to the model.
func computed(*model.Attribute) bool { return false }

// made reports whether a new row gets the field by itself.
func made(*model.Entity, string) bool { return false }

// keepsKeys reports whether rows of the entity come with others by themselves.
func keepsKeys(*model.Model, *model.Entity) bool { return false }

// ends reports whether a row is gone after the time in the field.
func ends(e *model.Entity, name string) bool { return e.Expires != nil && e.Expires.Name == name }
