package model

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"weir/internal/aggregate"
	"weir/internal/seq"
	"weir/internal/store"
	"weir/internal/value"
)

// Function is a Go function of a user's program that returns a row's additions to sums: Order.points(v1) in a model.
type Function struct {
	Name    string
	Version int // which is part of the definition
	call    func(row value.Item) ([]FunctionAdd, error)
}

// FunctionAdd is the addition of a function to the sum of one target. To has names in the key of the target; those that it lacks are the
// fields of the row that are named so.
type FunctionAdd struct {
	To     map[string]string
	Amount value.Value
}

// maxFunctionAdds is to how many targets one row may add.
const maxFunctionAdds = 100

// functions are those of the program.
var functions = map[string]Function{}

// Register gives the program a function. Call it before a model is loaded.
func Register(f Function, call func(row value.Item) ([]FunctionAdd, error)) {
	f.call = call
	functions[f.Name] = f
}

// ErrFunction is wrapped by the error of a program that does not have a function of a model, so that it cannot derive.
var ErrFunction = errors.New("this program does not have a Go function of the model")

// Functions returns an error that wraps ErrFunction unless the program has all functions of the model in the model's versions.
func (m *Model) Functions() error {
	for _, t := range m.Tallies {
		for _, s := range t.Sources {
			if f := s.function(); f != nil && f.call == nil {
				has := "no such function"
				if is, ok := functions[f.Name]; ok {
					has = fmt.Sprintf("%s(v%d)", is.Name, is.Version)
				}
				return fmt.Errorf("%w: %s of model %s needs %s(v%d), and the program has %s; use the program that calls weir.Main (docs/guide/go.md)", ErrFunction, t.Name, m.Name, f.Name, f.Version, has)
			}
		}
	}
	return nil
}

// function is the source's function, nil if it has none.
func (s *Source) function() *Function {
	if s.Amount == nil {
		return nil
	}
	return s.Amount.Function
}

// Addition is a row's addition to the sum of one target.
type Addition struct {
	Key    store.Key
	Amount value.Value
}

// Additions returns the additions of the source's function for a row. is says that the source has one. The error is why the row
// adds nothing.
func (s *Source) Additions(row value.Item) (out []Addition, is bool, err error) {
	f := s.function()
	if f == nil {
		return nil, false, nil
	}
	added, err := f.callWith(s.Amount.selectGiven(row))
	if err == nil && len(added) > maxFunctionAdds {
		err = fmt.Errorf("it adds to %d targets, at most %d are possible", len(added), maxFunctionAdds)
	}
	for _, a := range added {
		key, fits := s.targetOf(a.To, row)
		if want := checkSummable(a.Amount, false); err == nil && want != "" {
			err = fmt.Errorf("it adds the number %s, not %s", value.QuoteShort(a.Amount.Text()), want)
		}
		if err == nil && !fits {
			err = fmt.Errorf("it adds to no key of %s, which has %s", s.Tally.Target.Name, strings.Join(s.Tally.Target.KeyNames(), ", "))
		}
		out = append(out, Addition{key, a.Amount})
	}
	if err != nil {
		return nil, true, fmt.Errorf("%s(v%d): %w", f.Name, f.Version, err)
	}
	return out, true, nil
}

// TargetKeys returns the keys of the targets that a row adds to, none where they cannot be told.
func (s *Source) TargetKeys(row value.Item) []store.Key {
	if all, is, _ := s.Additions(row); is {
		return seq.Map(all, func(a Addition) store.Key { return a.Key })
	}
	if key, unfit, ok := s.TargetOf(row); ok && unfit == nil {
		return []store.Key{key}
	}
	return nil
}

// callWith calls the function. A panic is an error.
func (f *Function) callWith(row value.Item) (added []FunctionAdd, err error) {
	defer func() {
		if r := recover(); r != nil {
			added, err = nil, fmt.Errorf("it panics: %.200s", fmt.Sprint(r))
		}
	}()
	if f.call == nil {
		return nil, ErrFunction
	}
	return f.call(row)
}

// selectGiven is the part of a row that a function gets.
func (a *Amount) selectGiven(row value.Item) value.Item {
	var out []value.Attr
	for _, f := range a.Fields {
		if v := f.Get(row); !v.IsMissing() {
			out = append(out, value.Attr{Name: f.Name, Value: v})
		}
	}
	return value.NewItem(out...)
}

// targetOf is the key that a function adds to.
func (s *Source) targetOf(to map[string]string, row value.Item) (store.Key, bool) {
	target := s.Tally.Target
	for name := range to {
		if !slices.ContainsFunc(target.PrimaryKey(), func(k *KeyTemplate) bool { return k.Template.Slot(name) >= 0 }) {
			return store.Key{}, false
		}
	}
	return target.keyBy(func(k *KeyTemplate, name string) value.Value {
		if text, is := to[name]; is && k.Template.Whole() {
			return value.OfString(text)
		} else if is {
			return value.OfString(k.Template.Escape(text))
		}
		for i := range s.To {
			if s.To[i].Name == name {
				return s.To[i].Expr.Field.InKey(row, k.Template)
			}
		}
		return value.Value{}
	})
}

// functionText is a Go function with its version, as a sum names it behind the entity: points(v1).
var functionText = regexp.MustCompile(`^[^.]+\.(\pL[\pL\pN_]*)\((?:v([1-9]\d{0,8}))?\)$`)

func isFunction(text string) bool { return functionText.MatchString(text) }

// compileFunction compiles the source of a sum that is of a function.
func (c *compiler) compileFunction(t *Tally, s *Source, of word) {
	name, version := functionText.FindStringSubmatch(of.text)[1], functionText.FindStringSubmatch(of.text)[2]
	switch {
	case t.Kind != aggregate.Sum:
		c.addFlaw(of.pos, "sum: "+of.text, "a Go function gives numbers to add up, and this is a %s", t.Kind.Keyword)
	case t.Group != nil:
		c.addFlaw(of.pos, "derive it onto a row that an application writes", "a Go function says to which rows it adds, and those of a group are told by the group")
	case len(t.decl.To) > 0:
		c.addFlaw(t.decl.placeOf("to"), "", "a Go function says which row gets it, so to does not go with it")
	case version == "":
		c.addFlaw(of.pos, s.Entity.Name+"."+name+"(v1), and one more each time the function changes", "%s is of a Go function, whose version is missing", t.Name)
	}
	f := Function{Name: name}
	f.Version, _ = strconv.Atoi(version)
	if is := functions[name]; is.Version == f.Version {
		f = is
	}
	s.Amount = &Amount{Text: of.text[len(s.Entity.Name)+1:], Function: &f}
	e := s.Entity
	names := append(e.attributeNames(), seq.Map(e.Formulas, func(a *Attribute) string { return a.Name })...)
	for _, k := range e.PrimaryKey() {
		names = append(names, k.Template.Names()...)
	}
	for _, name := range sortedOnce(names) {
		if !e.Hides(name) {
			s.Amount.Fields = append(s.Amount.Fields, e.Field(name))
		}
	}
	if len(s.Amount.Fields) == 0 {
		c.addFlaw(of.pos, "declare the attributes that it reads", "rows of %s have no attribute for a Go function to read", e.Name)
	}
	for _, name := range t.Target.KeyNames() {
		if i := slices.IndexFunc(s.Amount.Fields, func(f *Field) bool { return f.Name == name }); i >= 0 {
			s.To = append(s.To, Assign{name, Expr{Field: s.Amount.Fields[i]}})
		}
	}
}
