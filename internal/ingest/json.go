package ingest

import (
	"bytes"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"weir/internal/value"
)

// ReadItem reads a JSON object: numbers exactly, objects as maps, arrays as lists. The
// error is a *Refusal. An object with a duplicate name is refused.
func ReadItem(text []byte) (value.Item, error) { return readItem(text, 0) }

// readItem reads an object at this depth. Depths in a row are counted from the row
// itself.
func readItem(text []byte, depth int) (value.Item, error) {
	d := reader{jsontext.NewDecoder(bytes.NewBuffer(text))}
	v, err := d.readValue(depth)
	if err == nil {
		err = d.checkEnd()
	}
	if err != nil {
		return nil, err
	}
	if v.Kind() != value.Map {
		return nil, newRefusal(Invalid, "", "must be a JSON object, not %s", describeValue(v))
	}
	return v.Item(), nil
}

// ReadCommand reads a command from a line of JSON with op, entity and item, and
// optionally idempotencyKey and ifMatch. The error is a *Refusal with pointers into the
// item.
func ReadCommand(line []byte) (c Command, err error) {
	it, err := readItem(line, -1)
	if err != nil {
		return c, inItem(err)
	}
	r := &Refusal{}
	say := func(reason string) { r.addProblem("", reason) }
	text := func(name string, into *string) {
		switch v := it.Get(name); v.Kind() {
		case value.Missing:
		case value.String:
			*into = v.Text()
		default:
			say(name + " must be a text, not " + describeValue(v))
		}
	}
	optional := func(name string, into *string) {
		if text(name, into); *into == "" && it.Get(name).Kind() == value.String {
			say(name + " is empty; leave it out where there is none")
		}
	}
	text("op", (*string)(&c.Op))
	text("entity", &c.Entity)
	optional("idempotencyKey", &c.IdempotencyKey)
	optional("ifMatch", &c.IfMatch)
	switch v := it.Get("item"); v.Kind() {
	case value.Map:
		c.Item = v.Item()
	case value.Missing:
		say("item is missing: the fields of the row")
	case value.String: // which may be the whole item
		say("item must be an object, not a text")
	default:
		say("item must be an object, not " + describeValue(v))
	}
	for _, a := range it {
		switch a.Name {
		case "op", "entity", "item", "idempotencyKey", "ifMatch":
		default:
			say("a command has no " + value.QuoteShort(a.Name) + "; it has op, entity, item, idempotencyKey and ifMatch")
		}
	}
	if len(r.Problems) > 0 {
		return c, r
	}
	return c, nil
}

// inItem turns pointers into a command into pointers into its item, where they point
// into the item.
func inItem(err error) error {
	var r *Refusal
	if errors.As(err, &r) {
		for i := range r.Problems {
			p := &r.Problems[i]
			if rest, ok := strings.CutPrefix(p.Pointer, "/item"); ok {
				p.Pointer = rest
			} else if p.Pointer != "" {
				member, inside, _ := strings.Cut(p.Pointer[1:], "/")
				if p.Pointer = ""; inside != "" {
					member += " has a value that"
				}
				p.Reason = "/" + member + " " + p.Reason
			}
		}
	}
	return err
}

// reader reads JSON into values.
type reader struct{ *jsontext.Decoder }

// asRefusal is the *Refusal for an error of the decoder.
func (d reader) asRefusal(err error) error {
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, io.EOF):
		return newRefusal(NotJSON, "", "there is nothing where JSON should be")
	case errors.As(err, &syntax) && errors.Is(err, jsontext.ErrDuplicateName):
		return newRefusal(Invalid, string(syntax.JSONPointer), "is there twice")
	case errors.As(err, &syntax):
		return newRefusal(NotJSON, string(syntax.JSONPointer), "is not JSON at byte %d: %v", syntax.ByteOffset, syntax.Err)
	}
	return newRefusal(NotJSON, "", "is not JSON: %v", err)
}

// checkEnd returns an error if something follows the value.
func (d reader) checkEnd() error {
	if _, err := d.ReadToken(); err == nil || !errors.Is(err, io.EOF) {
		return newRefusal(NotJSON, "", "goes on after its end, at byte %d", d.InputOffset())
	}
	return nil
}

// readValue reads the value that comes next, at this depth.
// A number that has more than 38 digits is refused, never rounded. Problems are at the JSON pointer
// of the value.
func (d reader) readValue(depth int) (value.Value, error) {
	t, err := d.ReadToken()
	if err != nil {
		return value.Value{}, d.asRefusal(err)
	}
	switch t.Kind() {
	case '"':
		return value.OfString(t.String()), nil
	case 'n':
		return value.OfNull(), nil
	case 't', 'f':
		return value.OfBool(t.Bool()), nil
	case '0':
		n, err := value.ParseNumber(t.String())
		if err != nil {
			return n, newRefusal(Invalid, string(d.StackPointer()), "is a number that no table holds: %v", err)
		}
		return n, nil
	}
	if depth > value.MaxDepth {
		return value.Value{}, newRefusal(Invalid, string(d.StackPointer()), "stands %d levels deep, %d are possible", depth, value.MaxDepth)
	}
	if t.Kind() == '{' {
		return d.readObject(depth + 1)
	}
	return d.readArray(depth + 1)
}

// readObject reads a map up to its end, behind the opening bracket.
func (d reader) readObject(depth int) (value.Value, error) {
	var attrs []value.Attr
	for d.PeekKind() != '}' {
		t, err := d.ReadToken()
		if err != nil {
			return value.Value{}, d.asRefusal(err)
		}
		name := t.String() // before the token is gone
		v, err := d.readValue(depth)
		if err != nil {
			return v, err
		}
		attrs = append(attrs, value.Attr{Name: name, Value: v})
	}
	_, err := d.ReadToken()
	return value.OfMap(value.NewItem(attrs...)), err
}

// readArray reads a list up to its end, behind the opening bracket.
func (d reader) readArray(depth int) (value.Value, error) {
	var vs []value.Value
	for d.PeekKind() != ']' {
		v, err := d.readValue(depth)
		if err != nil {
			return v, err
		}
		vs = append(vs, v)
	}
	_, err := d.ReadToken()
	return value.OfList(vs...), err
}
