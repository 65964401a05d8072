package owntable

import (
	"reflect"
	"strconv"
	"strings"
	"time"

	"weir/internal/events"
	"weir/internal/value"
)

// The fields of a tagged struct say the layout of a row: `row:"ATTR"`. A text, a whole number from 0, a position and a map
// are in the row as in the struct, a bool is true or absent, a time is in seconds. A zero value is absent.
// `row:"ATTR,N"` is for an attribute that is never absent; a number is then at least N. `row:"ATTR,ms"` is the same for a time in
// milliseconds. The fields of an embedded struct count as those of the struct.

// eachTagged calls do with the attribute, the option and the value of each tagged field, until one call returns an error.
func eachTagged(of reflect.Value, do func(attr, option string, field reflect.Value) error) (err error) {
	for i := 0; i < of.NumField() && err == nil; i++ {
		field := of.Type().Field(i)
		if tag, is := field.Tag.Lookup("row"); is {
			attr, option, _ := strings.Cut(tag, ",")
			err = do(attr, option, of.Field(i))
		} else if field.Anonymous && field.IsExported() {
			err = eachTagged(of.Field(i), do)
		}
	}
	return err
}

// readTagged sets the tagged fields of a struct from a row, up to the first that cannot be read. The error wraps ErrRow.
func readTagged(row value.Item, to any, do string) error {
	return eachTagged(reflect.ValueOf(to).Elem(), func(attr, option string, field reflect.Value) (err error) {
		switch to := field.Addr().Interface().(type) {
		case *events.Position:
			*to, err = decodePosition(row, attr, do)
			return err
		case *value.Item:
			v := row.Get(attr)
			if *to = v.Item(); !v.IsMissing() && v.Kind() != value.Map {
				err = unreadableError(row, attr, "a map", do)
			}
			return err
		case *bool:
			*to, err = decodeFlag(row, attr, do)
			return err
		}
		if field.Kind() == reflect.String {
			s, err := decodeText(row, attr, do)
			field.SetString(s)
			return err
		}
		if option == "" && !row.Has(attr) {
			return nil
		}
		least, _ := strconv.ParseInt(option, 10, 64)
		n, err := decodeInt(row, attr, least, do)
		if at, is := field.Addr().Interface().(*time.Time); !is {
			field.SetInt(n)
		} else if *at = time.Unix(n, 0).UTC(); option == "ms" {
			*at = time.UnixMilli(n).UTC()
		}
		return err
	})
}

// writeTagged returns the attributes of a tagged struct, Missing for those that its row does not have.
func writeTagged(of any) (attrs []value.Attr) {
	_ = eachTagged(reflect.ValueOf(of), func(name, option string, field reflect.Value) error {
		a, zero := newAttr(name, value.Value{}), field.IsZero()
		switch is := field.Interface().(type) {
		case events.Position:
			a.Value = is.Value()
		case value.Item:
			a.Value = value.OfMap(is)
		case bool:
			a.Value = value.OfBool(is)
		case time.Time:
			zero = is.IsZero()
			if a.Value = value.OfInt(is.Unix()); option == "ms" {
				a.Value = value.OfInt(is.UnixMilli())
			}
		default:
			if field.Kind() == reflect.String {
				a.Value = value.OfString(field.String())
			} else {
				a.Value = value.OfInt(field.Int())
			}
		}
		if zero && option == "" {
			a.Value = value.Value{}
		}
		attrs = append(attrs, a)
		return nil
	})
	return attrs
}
