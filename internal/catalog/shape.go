package catalog

import (
	"regexp"
	"strings"

	"weir/internal/model"
	"weir/internal/owntable"
	"weir/internal/seq"
	"weir/internal/value"
)

// named stands for any text in a key template.
var named = regexp.MustCompile(`\{[^}]*\}|\[[^\]]*\]`)

// ShapeOf returns the shape of an entity's rows. Only tests of an attribute for
// single values are in it, so it may also fit rows that the entity's where leaves out.
func ShapeOf(e *model.Entity) owntable.Shape { return shapeOf(e, nil) }

// shapeOf is ShapeOf for rows in whose keys some names have one text.
func shapeOf(e *model.Entity, constants map[string]string) owntable.Shape {
	s := owntable.Shape{Is: map[string][]string{}}
	for _, k := range e.Keys {
		pattern := k.Template.String()
		for name, text := range constants {
			pattern = strings.ReplaceAll(pattern, "{"+name+"}", k.Template.Escape(text))
		}
		if pattern = named.ReplaceAllString(pattern, "*"); k.Template.IsLower() {
			pattern = strings.ToLower(pattern)
		}
		switch k.Attr.Name {
		case e.Table.Key.Partition.Name:
			s.Partition = pattern
		case e.Table.Key.Sort.Name:
			s.Sort = pattern
		}
	}
	for i := range e.Where {
		if f := e.Where[i].Field; f.Key == nil {
			s.Is[f.Attr] = append(s.Is[f.Attr], seq.Map(e.Where[i].Listed(), value.Scalar)...)
		}
	}
	return s
}

// CanBe reports whether a row with such a text (owntable.RowText) can be of the entity, by its key. The text of a
// long key tells only its ends, so it may be of several entities that differ in the middle of a key.
func CanBe(e *model.Entity, text string) bool {
	if row, told := owntable.RowOf(text); told {
		return e.CanBe(row) && e.Takes(row.Key)
	}
	table, ends, _ := owntable.LongRowOf(text)
	return e.Table.Name == table && ShapeOf(e).Overlaps(ends)
}
