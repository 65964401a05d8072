package main

import (
	"embed"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// A model's application is a script in Starlark, which is a small Python without clock, files or chance of its own:
// MODEL.star says its tables, the rows it writes, what it does now and then and how often, and what must be answered
// afterwards. The functions of a script stand in builtins; prelude.star has those that the scripts share.

//go:embed *.star
var scripts embed.FS

// A script is a model's, while it runs.
type script struct {
	*app
	*expect
	form   form
	thread *starlark.Thread
}

// playScripts runs the prelude and the model's script, from the first line to the last.
func (s *script) playScripts() error {
	globals := s.predeclared()
	for _, name := range []string{"prelude.star", s.model + ".star"} {
		text, err := scripts.ReadFile(name)
		if err != nil {
			return err
		}
		if err := s.execScript(name, text, globals); err != nil {
			return err
		}
	}
	return nil
}

// execScript runs a script, and adds its definitions to globals.
func (s *script) execScript(name string, text []byte, globals starlark.StringDict) error {
	s.thread = &starlark.Thread{Name: name}
	dialect := &syntax.FileOptions{TopLevelControl: true, GlobalReassign: true}
	defined, err := starlark.ExecFileOptions(dialect, s.thread, name, text, globals)
	maps.Copy(globals, defined)
	if at := (*starlark.EvalError)(nil); errors.As(err, &at) {
		return errors.New(at.Backtrace())
	}
	return err
}

// predeclared are the builtins, and the pools that all scripts draw from.
func (s *script) predeclared() starlark.StringDict {
	globals := starlark.StringDict{}
	for name, do := range s.builtins() {
		globals[name] = starlark.NewBuiltin(name, func(_ *starlark.Thread, _ *starlark.Builtin, args starlark.Tuple, kw []starlark.Tuple) (starlark.Value, error) {
			return s.callBuiltin(do, args, kw)
		})
	}
	for name, pool := range map[string][]string{"GIVEN": given, "ADVERBS": adverbs, "NOUNS": nouns, "TAGS": tagPool} {
		globals[name] = toStarlark(listValue(pool...))
	}
	return globals
}

// callBuiltin calls a builtin. A call that does not fit, also where a value is of another type than it must be, is
// an error of the script.
func (s *script) callBuiltin(f func(*call) any, args starlark.Tuple, kw []starlark.Tuple) (out starlark.Value, err error) {
	defer func() {
		switch bad := recover().(type) {
		case nil:
		case error:
			err = bad
		default:
			err = fmt.Errorf("%v", bad)
		}
	}()
	c := &call{script: s, args: args, named: row{}}
	for _, k := range kw {
		c.named[string(k[0].(starlark.String))] = plainGo(k[1])
	}
	return toStarlark(f(c)), nil
}

// A badCall ends a builtin that a script calls wrongly.
type badCall struct{ error }

func failCall(format string, args ...any) { panic(badCall{fmt.Errorf(format, args...)}) }

// A call is one of a builtin: its arguments one after the other, and those with names.
type call struct {
	*script
	args  starlark.Tuple
	named row
}

func (c *call) takeNext() starlark.Value {
	if len(c.args) == 0 {
		failCall("an argument is missing")
	}
	v := c.args[0]
	c.args = c.args[1:]
	return v
}

// takeArgument gives the next argument as a T.
func takeArgument[T any](c *call) T {
	v := plainGo(c.takeNext())
	out, ok := v.(T)
	if !ok && v != nil {
		failCall("%v is no %T", v, out)
	}
	return out
}

func (c *call) int() int { return asInt(takeArgument[num](c)) }

func asInt(n num) int {
	i, err := strconv.Atoi(string(n))
	if err != nil {
		failCall("%s is no integer", n)
	}
	return i
}

func textsOf(v any) []string {
	items, _ := v.([]any)
	return mapEach[[]string](items, func(e any) string { return fmt.Sprint(e) })
}

// table is the first argument where that is a table's name; it may be left out where there is one table only.
func (c *call) table() string {
	if name, ok := c.args[0].(starlark.String); ok && c.tables[string(name)] != nil {
		c.takeNext()
		return string(name)
	}
	if len(c.specs) != 1 {
		failCall("which table?")
	}
	return c.specs[0].name
}

// takeRest gives the arguments that are left; those in lists too.
func (c *call) takeRest() (out []any) {
	var add func(any)
	add = func(v any) {
		if items, ok := v.([]any); ok {
			for _, e := range items {
				add(e)
			}
		} else if v != nil {
			out = append(out, v)
		}
	}
	for len(c.args) > 0 {
		add(plainGo(c.takeNext()))
	}
	return out
}

func (c *call) ops() []op { return mapEach[[]op](c.takeRest(), func(v any) op { return v.(op) }) }

func (c *call) rowsArg() []row {
	return mapEach[[]row](takeArgument[[]any](c), func(v any) row { return v.(row) })
}

// begins is the beginning that a text must have, for where and rows.
type begins string

// hasAttributes tells whether a row has these attributes.
func hasAttributes(r, want row) bool {
	for k, v := range want {
		if prefix, ok := v.(begins); ok {
			if !strings.HasPrefix(rowText(r, k), string(prefix)) {
				return false
			}
		} else if !reflect.DeepEqual(r[k], v) {
			return false
		}
	}
	return true
}

func (s *script) callFunction(f starlark.Callable, args ...any) starlark.Value {
	out, err := starlark.Call(s.thread, f, mapEach[starlark.Tuple](args, toStarlark), nil)
	if err != nil {
		panic(badCall{err})
	}
	return out
}

func (c *call) access() *access {
	v, ok := c.named["by"].(row)
	if !ok {
		return nil
	}
	by := &access{table: c.specs[0].name, index: rowText(v, "index"), hash: rowText(v, "hash"), value: v["value"], rng: rowText(v, "rng"), op: rowText(v, "op"), arg: v["arg"], desc: v["desc"] == true}
	if t, ok := v["table"].(string); ok {
		by.table = t
	}
	if keep, ok := v["keep"].(starlark.Callable); ok {
		by.keep = func(r row) bool { return bool(c.callFunction(keep, r).Truth()) }
	}
	return by
}

// builtins are the functions of scripts: chance, values, writes, written rows, checks.
func (s *script) builtins() map[string]func(c *call) any {
	changes := func(log []change) any {
		return mapEach[[]any](log, func(c change) any { return []any{c.old, c.new} })
	}
	return map[string]func(c *call) any{
		"times":  func(c *call) any { return n(c.scaledNumber(c.int())) },
		"now":    func(c *call) any { return c.tickClock() },
		"chance": func(c *call) any { f, _ := starlark.AsFloat(c.takeNext()); return c.chance(f) },
		"intn":   func(c *call) any { return n(c.rand.IntN(c.int())) },
		"hex":    func(c *call) any { return c.randomHex(c.int()) },
		"noise":  func(c *call) any { return bin(c.randomBytes(c.int())) },
		"uuid":   func(c *call) any { return c.randomUUID() },
		"ulid":   func(c *call) any { return c.nextULID() },
		"title":  func(c *call) any { return c.drawTitle() },
		"one":    func(c *call) any { v := c.takeNext().(starlark.Indexable); return v.Index(c.rand.IntN(v.Len())) },
		"some":   func(c *call) any { size := c.int(); return pickSome(c.app, size, takeArgument[[]any](c)) },
		"live": func(c *call) any {
			size := c.int()
			var deeds []deed
			for _, v := range takeArgument[[]any](c) {
				d := v.([]any)
				deeds = append(deeds, deed{asInt(d[0].(num)), func() { c.callFunction(d[1].(starlark.Callable)) }})
			}
			c.doWeighted(size, deeds)
			return nil
		},

		"num":  func(c *call) any { return &opaque{num(takeArgument[string](c))} },
		"strs": func(c *call) any { return normalValue(strs(textsOf(c.takeRest()))) },
		"nums": func(c *call) any {
			return normalValue(mapEach[nums](c.takeRest(), func(v any) num { return num(fmt.Sprint(v)) }))
		},
		"bins": func(c *call) any { return normalValue(mapEach[bins](c.takeRest(), func(v any) bin { return v.(bin) })) },
		"f": func(c *call) any {
			return fmt.Sprintf(takeArgument[string](c), mapEach[[]any](c.takeRest(), func(v any) any {
				if d, ok := v.(num); ok {
					return asInt(d)
				}
				return v
			})...)
		},
		"unix": func(c *call) any { at, _ := time.Parse(time.RFC3339, takeArgument[string](c)); return n(at.Unix()) },
		"merge": func(c *call) any {
			return mergeRows(append(mapEach[[]row](c.takeRest(), func(v any) row { return v.(row) }), c.named)...)
		},
		"without": func(c *call) any {
			r := cloneRow(takeArgument[row](c))
			for _, k := range c.takeRest() {
				delete(r, k.(string))
			}
			return r
		},
		"same": func(c *call) any { return equalRows(takeArgument[row](c), takeArgument[row](c)) },
		"mean": func(c *call) any {
			return roundedMean(mapEach[[]num](c.takeRest(), func(v any) num { return v.(num) }))
		},
		"begins": func(c *call) any { return begins(takeArgument[string](c)) },

		"table": func(c *call) any { c.addTable(c); return nil },
		"form": func(c *call) any {
			kind, name := takeArgument[string](c), takeArgument[string](c)
			c.page, c.script.form = c.int(), forms[kind](name)
			return nil
		},
		"put": func(c *call) any {
			t := c.table()
			return putOp(t, mergeRows(append([]row{takeArgument[row](c)}, c.named)...))
		},
		"delete":  func(c *call) any { t := c.table(); return deleteOp(t, c.tables[t].rowKey(takeArgument[row](c))) },
		"written": func(c *call) any { return takeArgument[op](c).row }, // the row that an op writes
		"update": func(c *call) any {
			t := c.table()
			key := c.tables[t].rowKey(takeArgument[row](c))
			set := takeArgument[row](c)
			return updateOp(t, key, set, textsOf(c.takeRest())...)
		},
		"write":    func(c *call) any { c.writeEach(c.ops()...); return nil },
		"transact": func(c *call) any { c.writeTransaction(c.ops()...); return nil },
		"batch":    func(c *call) any { c.writeBatches(c.ops()...); return nil },
		"sweep": func(c *call) any {
			t := c.table()
			c.awaitExpiry(t, takeArgument[string](c), c.rowsArg()...)
			return nil
		},
		"capture": func(c *call) any {
			if c.failed == nil {
				c.failed = c.finishRecording()
			}
			if c.failed != nil {
				panic(badCall{c.failed})
			}
			return nil
		},

		"row": func(c *call) any { t := c.table(); return c.app.bookedRow(t, takeArgument[row](c)) },
		"rows": func(c *call) any {
			t := c.specs[0].name
			if len(c.args) > 0 {
				t = c.table()
			}
			return c.app.bookedRows(t, func(r row) bool { return hasAttributes(r, c.named) })
		},
		"where": func(c *call) any {
			rows := c.rowsArg()
			for len(c.args) > 0 {
				name := takeArgument[string](c)
				c.named[name] = plainGo(c.takeNext())
			}
			return slices.DeleteFunc(rows, func(r row) bool { return !hasAttributes(r, c.named) })
		},
		"ordered": func(c *call) any {
			rows := c.rowsArg()
			return sortRows(rows, c.named["desc"] == true, fieldText(textsOf(c.takeRest())...))
		},
		"changes":  func(c *call) any { return changes(c.log) },
		"recorded": func(c *call) any { return changes(c.app.recorded) },

		"check": func(c *call) any {
			query, p := takeArgument[string](c), params{}
			for k, v := range takeArgument[row](c) {
				p[k] = fmt.Sprint(v)
			}
			rows := c.rowsArg()
			add := func() *check { return c.expect.addCheck(query, p, c.named["ordered"] != false, rows, c.access()) }
			if c.named["derived"] == true {
				add = func() *check {
					if by := c.access(); by != nil {
						if err := c.auditAnswer(*by, true, rows); err != nil {
							c.addProblem(query, p, err)
						}
					}
					return c.expect.addDerived(query, p, c.named["ordered"] != false, rows)
				}
			}
			made := add()
			made.Subset = c.named["subset"] == true
			if but, ok := c.named["but"].(row); ok {
				made.Except = map[string][]string{}
				for k, v := range but {
					made.Except[k] = textsOf(v)
				}
			}
			return nil
		},
		"search": func(c *call) any {
			s := searched{query: takeArgument[string](c), fields: textsOf(plainGo(c.takeNext())), rows: c.rowsArg()}
			p := params{}
			for k, v := range takeArgument[row](c) {
				p[k] = fmt.Sprint(v)
			}
			c.expect.addSearch(s, p, c.int())
			return nil
		},
		"present": func(c *call) any {
			f := c.takeNext().(starlark.Callable)
			c.expect.present = func(r row) row { return cloneRow(plainGo(c.callFunction(f, r)).(row)) }
			return nil
		},
		"history": func(c *call) any { name := takeArgument[string](c); c.expect.history[name] = c.int(); return nil },
		"problem": func(c *call) any {
			c.addProblem(takeArgument[string](c), nil, errors.New(takeArgument[string](c)))
			return nil
		},
	}
}

// addTable creates a table: name, hash and range key, and by name indexes (name, hash, range, whether of keys only).
func (s *script) addTable(c *call) {
	t := tableSpec{name: takeArgument[string](c), hash: takeArgument[string](c), numbers: textsOf(c.named["numbers"]), ttl: rowText(c.named, "ttl")}
	if len(c.args) > 0 {
		t.rng = takeArgument[string](c)
	}
	indexes := func(name string) (out []indexSpec) {
		of, _ := c.named[name].([]any)
		for _, v := range of {
			i := append(v.([]any), "", false)
			out = append(out, indexSpec{name: i[0].(string), hash: i[1].(string), rng: i[2].(string), keysOnly: i[3] == true})
		}
		return out
	}
	t.gsis, t.lsis = indexes("gsis"), indexes("lsis")
	s.doUnlessFailed(func() error { return s.createTable(t) })
	if err := s.failed; err != nil {
		failCall("table %s: %w", t.name, err)
	}
	s.specs = append(s.specs, t)
	s.tables[t.name] = &table{tableSpec: t, rows: make(map[string]row)}
}

// An opaque is a value that a script hands on as it is.
type opaque struct{ v any }

func (o *opaque) String() string        { return fmt.Sprint(o.v) }
func (o *opaque) Type() string          { return fmt.Sprintf("%T", o.v) }
func (o *opaque) Freeze()               {}
func (o *opaque) Truth() starlark.Bool  { return true }
func (o *opaque) Hash() (uint32, error) { return 0, errors.New("is no key") }

// A booked is a row that a script reads; an attribute that is not there is None.
type booked struct {
	opaque
	row
}

func (b *booked) Get(k starlark.Value) (starlark.Value, bool, error) {
	name, _ := starlark.AsString(k)
	return toStarlark(b.row[name]), true, nil
}

// toStarlark gives a value to a script.
func toStarlark(v any) starlark.Value {
	switch v := v.(type) {
	case starlark.Value:
		return v
	case nil:
		return starlark.None
	case string:
		return starlark.String(v)
	case bool:
		return starlark.Bool(v)
	case bin:
		return starlark.Bytes(v)
	case num:
		if i, ok := new(big.Int).SetString(string(v), 10); ok {
			return starlark.MakeBigInt(i)
		}
	case []any:
		return starlark.NewList(mapEach[[]starlark.Value](v, toStarlark))
	case []row:
		return starlark.NewList(mapEach[[]starlark.Value](v, func(r row) starlark.Value { return toStarlark(r) }))
	case row:
		if v == nil {
			return starlark.None
		}
		return &booked{opaque{v}, v}
	}
	return &opaque{v}
}

// plainGo takes a value from a script.
func plainGo(v starlark.Value) any {
	switch v := v.(type) {
	case starlark.NoneType:
		return nil
	case starlark.String:
		return string(v)
	case starlark.Bool:
		return bool(v)
	case starlark.Bytes:
		return bin(v)
	case starlark.Int:
		return num(v.String())
	case *opaque:
		return v.v
	case *booked:
		return v.row
	case *starlark.Dict:
		out := row{}
		for _, k := range v.Items() {
			name, _ := starlark.AsString(k[0])
			out[name] = plainGo(k[1])
		}
		return out
	case starlark.Indexable: // a list or a tuple
		out := make([]any, v.Len())
		for i := range out {
			out[i] = plainGo(v.Index(i))
		}
		return out
	}
	return v // a function
}
