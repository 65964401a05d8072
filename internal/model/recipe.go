package model

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"weir/internal/seq"
)

// suggestRecipe says how a tally reaches a row of whose key its source rows say some names alone: a group of these names, which the
// row follows. It is "" where a group has no such value.
func (t *Tally) suggestRecipe(c *compiler, source *Entity, says []string) string {
	d, value := t.decl, t.Kind.Keyword
	if len(d.Of.of) != 1 || t.Hidden || t.IsSet() {
		return ""
	}
	if field := strings.ReplaceAll(d.Of.of[0].text, source.Name+".", ""); field != source.Name {
		value = "{" + t.Kind.Keyword + ": " + field
		for _, option := range []struct {
			key string
			n   int
		}{{"round", d.Round}, {"max", d.Max}} {
			if d.hasKey(option.key) {
				value += fmt.Sprintf(", %s: %d", option.key, option.n)
			}
		}
		value += "}"
	}
	return c.groupAndFollow(d.deriveDecl, t.Target, source, d.To, len(d.Where) > 0, says, t.Kind.Keyword, value, TypeNumber)
}

// groupAndFollow is that with the names of the file. value is the value that the group shows, of a kind and a type.
func (c *compiler) groupAndFollow(d deriveDecl, target, source *Entity, to []pair, where bool, says []string, kind, value string, typ Type) string {
	of, _ := reflect.TypeFor[groupValueDecl]().FieldByName("Of")
	if counts := value == kind; !counts && !IsLatest(kind) && !slices.Contains(strings.Fields(of.Tag.Get("keys")), kind) || strings.HasPrefix(value, "{count") {
		return ""
	}
	name := target.Name + strings.ToUpper(d.attr.text[:1]) + d.attr.text[1:]
	names := strings.Join(seq.Map(says, func(name string) string { return "{" + name + "}" }), "#")
	entity, group := "", ""
	if len(c.Tables) > 1 {
		entity = "table: " + target.Table.Name + ", "
	}
	entity += fmt.Sprintf("key: {%s: \"%s#%s\"", target.Table.Key.Partition.Name, name, names)
	if sort := target.Table.Key.Sort.Name; sort != "" {
		entity += ", " + sort + ": " + name
	}
	if by := seq.Where(to, func(p pair) bool { return slices.Contains(says, p.name.text) && p.value.text != p.name.text }); len(by) > 0 {
		group = ", by: {" + strings.Join(seq.Map(by, func(p pair) string { return p.name.text + ": " + p.value.text }), ", ") + "}"
	}
	if where {
		group += ", where: {…}"
	}
	return fmt.Sprintf("group them by what they say, and follow the group: under entities %s: {%s}, attributes: {%s: %s}}; under derive %s: {group: %s%s, set: {%s: %s}} and %s.%s: {follow: %s.%s}",
		name, entity, d.attr.text, typ, name, source.Name, group, d.attr.text, value, target.Name, d.attr.text, name, d.attr.text)
}
