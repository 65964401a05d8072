package model

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// hiding is a model in which attributes are hidden. Each construct of the language reads one of them at one of
// the marks.
const hiding = `model: hiding
tables:
  rows: {key: [PK, SK], indexes: {GSI: [GP, GS]}<table>}
entities:
  A:
    where: {k: A<where>}
    key: {PK: "A#{id}", SK: A<key>}
    attributes:
      id: string!
      text: string
      list: list
      word: {type: string, enum: [one, two]}
      secret: {type: string, hidden: true}
      secretNumber: {type: number, hidden: true}
      secretTime: {type: time, hidden: true}
      secretList: {type: list, hidden: true}
      secretWord: {type: string, enum: [one, two], hidden: true}
      <attribute>
    <entity>
  B:
    where: {k: B}
    key: {PK: "A#{id}", SK: "B#{b}", GP: "B#{text}", GS: "{b}"}
    attributes:
      text: string
      number: number
      secret: {type: string, hidden: true}
      secretNumber: {type: number, hidden: true}
      secretTime: {type: time, hidden: true}
      secretWord: {type: string, enum: [one, two], hidden: true}
  Made:
    where: {k: Made}
    key: {PK: "MADE#{id}", SK: "MADE#{m}"}
    attributes: {text: string, number: number, map: map<made>}
  Sums:
    where: {k: Sums}
    key: {PK: "SUM#{id}", SK: "SUM#{m}"}
    attributes: {number: number<sums>}
  Old:
    where: {k: Old}
    key: {PK: "OLD#{id}", SK: "OLD#{b}"}
    attributes: {secret: {type: string, hidden: true}, secretWord: {type: string, enum: [one, two], hidden: true}}
<rest>
`

// construct is one of the language that reads a hidden attribute: keys are those of shapes, and marks what stands there.
type construct struct {
	keys  string
	marks []string // mark, text
}

// derive is a reading in the section derive.
func derive(keys, text string) construct {
	return construct{keys, []string{"rest", "derive:\n  " + text}}
}

// asks is a reading in a query.
func asks(keys, text string) construct {
	return construct{keys, []string{"rest", "queries:\n  q: " + text}}
}

// searches is a reading in a search index.
func searches(keys, text string) construct {
	return construct{keys, []string{"rest", "search:\n  s: " + text}}
}

// readings has every construct that can read an attribute.
func readings() []construct {
	out := []construct{
		{"table.ttl", []string{"table", ", ttl: secretNumber"}},
		{"entity.where", []string{"where", ", secretWord: [one, two]"}},
		{"entity.key table.indexes table.key index.key", []string{"key", `, GP: "A#{secret}", GS: "{id}"`}},
		{"entity.unique", []string{"key", `, GP: "{secret}", GS: "{id}"`, "entity", "unique: [secret]"}},
		{"entity.expires", []string{"entity", "expires: secretTime"}},
		{"entity.once once.key", []string{"entity", "once: {of: Made, key: secret, set: {m: secret, id: id}}"}},
		{"once.set", []string{"entity", "once: {of: Made, key: text, set: {m: text, id: id, text: secret}}"}},
		{"entity.supersede supersede.where", []string{"key", "", "entity", `supersede: {where: {id: y, secretWord: one}, row: {id: x}, append: {list: due}}`, "attribute", "due: time"}},
		{"supersede.append", []string{"entity", "supersede: {where: {id: y}, row: {id: x}, append: {list: secretTime}}"}},
		{"attribute.forward", []string{"attribute", "step: {type: string, enum: [one, two], hidden: true, forward: true}"}},
		{"attribute.after", []string{"attribute", "late: {type: string, enum: [one, two], after: {secretTime: two}}"}},
		{"attribute.else attribute.by", []string{"attribute", "who: {type: list, else: B.b, by: {id: secret}}"}},
		{"attribute.is", []string{"attribute", `told: {type: string, is: "secretList[0]"}`, "rest", "search:\n  s: {of: A, text: [told]}"}},
		{"attribute.is", []string{"attribute", `told: {type: number, is: 2 * size(secretList)}`, "rest", "search:\n  s: {of: A, text: [text], sorts: [told]}"}},
		{"attribute.is attribute.in", []string{"attribute", "due: time\n      told: {type: number, is: due - secretTime, in: days}\n      more: {type: number, is: told + 1}",
			"rest", "queries:\n  q: {get: A, with: {id: id}, return: {more: more}}"}},
		{"attribute.from", []string{"attribute", "end: {type: number, from: secretTime, plus: 24h}"}},
		{"attribute.plus", []string{"attribute", "due: time\n      end: {type: number, from: due, plus: {secretWord: {one: 24h, two: 48h}}}"}},
		{"attribute.default", []string{"attribute", "end: {type: number, default: {secretWord: {one: 1}}}"}},
		derive("tally.where", "A.n: {count: B, where: {secret: present}}"),
		derive("tally.to", "A.n: {count: B, to: {id: secret}}"),
		derive("tally.count", "A.n: {count: B.secretNumber}"),
		derive("tally.sum", "A.n: {sum: B.secretNumber}"),
		derive("tally.sum", "A.n: {sum: B.number * B.secretNumber}"),
		derive("tally.mean", "A.n: {mean: B.secretNumber, round: 1}"),
		derive("tally.distinct", "A.n: {distinct: B.secret, max: 5}"),
		{"tally.set", []string{"made", "", "rest", "derive:\n  Set.all: {set: B.secret, to: {id: id}}"}},
		derive("row rule.where", "Made: {row: B, where: {secret: present}, set: {id: id, m: b}}"),
		derive("row rule.set", "Made: {row: B, set: {id: id, m: b, text: secret}}"),
		derive("row rule.set", "Made: {row: B, set: {id: id, m: b, map: {deep: {text: secret}}}}"),
		derive("row rule.set", "Made: {row: B, keep: insert, each: {of: A, by: {id: id}}, set: {id: id, m: b, text: A.secret}}"),
		derive("row rule.each each.by", "Made: {row: B, keep: insert, each: {of: A, by: {secret: text}}, set: {id: A.id, m: $position}}"),
		derive("each.by", "Made: {row: B, keep: insert, each: {of: A, by: {text: secret}}, set: {id: A.id, m: $position}}"),
		derive("follow.follow", "Made: {row: B, set: {id: id, m: b, text: {follow: A.secret, by: {id: id}}}}"),
		derive("follow.by", "Made: {row: B, set: {id: id, m: b, text: {follow: A.text, by: {id: secret}}}}"),
		derive("followed value.follow", "B.n: {follow: A.secret}"),
		derive("followed value.by", "B.n: {follow: A.text, by: {id: secret}}"),
		derive("group.where", "Sums: {group: B, where: {secret: present}, by: {id: id, m: b}, set: {number: count}}"),
		derive("group.by", "Sums: {group: B, by: {id: id, m: secret}, set: {number: count}}"),
		derive("group value.where", "Sums: {group: B, by: {id: id, m: b}, set: {number: {count: B, where: {secret: present}}}}"),
		derive("steps.steps stage.where", "A.word: {steps: {two: {when: B, where: {secret: present}}}}"),
		derive("stage.to", "A.word: {steps: {two: {when: B, to: {id: secret}}}}"),
		derive("stage.each", "A.word: {steps: {two: {when: B, each: secretList, who: b}}}"),
		derive("stage.who", "A.word: {steps: {two: {when: A, each: list, who: secret}}}"),
		derive("stage.set", "A.word: {steps: {two: {when: B, set: {text: secret}}}}"),
		derive("stage.set", "A.word: {steps: {two: {when: B, set: {secretTime: secretTime, text: text}}}}"),
		derive("latest.by", "A.n: {latest: B.text, by: secretNumber}"),
		derive("latest of a group.by", "Sums: {group: B, by: {id: id, m: b}, set: {number: {latest: number, by: secretNumber}}}"),
		derive("latest of a group.where", "Sums: {group: B, by: {id: id, m: b}, set: {number: {max: number, where: {secret: present}}}}"),
		{"latest of a group.also", []string{"sums", ", also: number", "rest", "derive:\n  Sums: {group: B, by: {id: id, m: b}, set: {number: {max: number, also: {also: secretNumber}}}}"}},
		derive("latest.where", "A.n: {latest: B.text, by: number, where: {secret: present}}"),
		derive("latest.to", "A.n: {latest: B.text, by: number, to: {id: secret}}"),
		derive("latest.also", "A.n: {latest: B.text, by: number, also: {m: secret}}"),
		{"migration.into", []string{"rest", "migrate:\n  m: {rows: Old, into: {B: {text: secret, b: b}}}"}},
		searches("search.where", "{of: B, where: {secret: present}, text: [text]}"),
		searches("search.text", "{of: B, text: [secret]}"),
		searches("search.filters", "{of: B, text: [text], filters: [secret]}"),
		searches("search.sorts", "{of: B, text: [text], sorts: [secretNumber]}"),
		asks("query.with", "{list: B, with: {id: id, secret: s}}"),
		asks("query.where", "{list: B, with: {id: id}, where: {secret: {begins: {param: s}}}}"),
		asks("query.any", "{list: B, with: {id: id}, any: {secret: s}}"),
		asks("query.sort", "{list: B, with: {id: id}, sort: secretNumber}"),
		asks("query.then step.with", "{get: A, with: {id: id}, then: {get: A, with: {id: secret}}, unique: true}"),
		asks("query.then step.with", "{get: A, with: {id: id}, then: {get: A, with: {id: secretList}}, unique: true}"),
		asks("step.where", "{get: A, with: {id: id}, then: {list: B, with: {id: id}, where: {secret: present}}}"),
		asks("step.with", "{get: A, with: {id: id}, then: {list: B, with: {id: id, secret: text}}}"),
		asks("query.return", "{get: A, with: {id: id}, return: {s: secret}}"),
		asks("returned value.size", "{get: A, with: {id: id}, return: {s: {size: secretList}}}"),
		asks("returned value.distinct", "{get: A, with: {id: id}, return: {s: {distinct: B.secret, by: {id: id}}}}"),
		asks("returned value.by", "{get: A, with: {id: id}, return: {s: {distinct: B.text, by: {id: secret}}}}"),
		{"query.search", []string{"rest", "search:\n  s: {of: B, text: [text]}\nqueries:\n  q: {search: s, where: {secret: present}}"}},
		{"query.below step.below", []string{"key", `, GP: all, GS: "{secret}"`, "rest", "queries:\n  q: {list: A, by: GSI, below: {secret: s}}"}},
		{"query.range step.range", []string{"key", `, GP: all, GS: "{secret}"`, "rest", "queries:\n  q: {list: A, by: GSI, range: {secret: {begins: {param: s}}}}"}},
	}
	for _, a := range []string{"sum", "mean", "distinct"} {
		more := map[string]string{"mean": ", round: 1", "distinct": ", max: 5"}[a]
		out = append(out, derive("group.set group value."+a, "Sums: {group: B, by: {id: id, m: b}, set: {number: {"+a+": secretNumber"+more+"}}}"))
	}
	for _, unit := range strings.Fields("hour day week month year") {
		out = append(out, derive("time bucket."+unit, "Sums: {group: B, by: {id: id, m: {"+unit+": secretTime}}, set: {number: count}}"))
	}
	for _, k := range latestKeywords {
		by := map[bool]string{true: ", by: number"}[k == keyLatest || k == keyEarliest]
		out = append(out, derive("latest."+k, "A.n: {"+k+": B.secretNumber"+by+"}"))
		out = append(out, derive("latest of a group."+k, "Sums: {group: B, by: {id: id, m: b}, set: {number: {"+k+": secretNumber"+by+"}}}"))
	}
	return out
}

// tellNothing are the keys of shapes that name no attribute whose value is read: other things, constants, and
// attributes that are written.
var tellNothing = strings.Fields(`model.* table.stream index.local index.projection entity.table entity.attributes entity.new entity.flatten
	key_template.* attribute.type attribute.as attribute.zone attribute.required attribute.enum attribute.min attribute.max attribute.whole attribute.hidden attribute.legacy
	once.of supersede.row tally.round tally.max tally.hidden row_rule.row row_rule.keep group.group time_bucket.zone time_bucket.epoch
	group_value.count group_value.round group_value.max each.of stage.when stage.max follow.keep followed_value.keep test.* parameter.param migration.rows migration.table
	migration.key search.of query.get query.list query.by query.order query.expired query.unique step.get step.list step.by step.order
	step.expired step.any`)

// fill puts a reading into the model, with its attributes hidden or not.
func (r construct) fill(hidden bool) string {
	text := hiding
	for i := 0; i < len(r.marks); i += 2 {
		text = strings.Replace(text, "<"+r.marks[i]+">", r.marks[i+1], 1)
	}
	if strings.Contains(text, "Set.all") {
		text = strings.Replace(text, "  Old:\n", "  Set:\n    where: {k: Set}\n    key: {PK: \"SET#{id}\", SK: \"SET[#{leaf}]\"}\n  Old:\n", 1)
	}
	for _, mark := range []string{"table", "where", "key", "attribute", "entity", "made", "sums", "rest"} {
		text = strings.Replace(text, "<"+mark+">", "", 1)
	}
	if !hidden {
		text = strings.ReplaceAll(text, "hidden: true", "hidden: false")
	}
	return text
}

// nouns are the shapes of more than one word, as the keys of a reading have them.
var nouns = strings.NewReplacer("row rule", "row_rule", "followed value", "followed_value", "group value", "group_value", "time bucket", "time_bucket",
	"returned value", "returned_value", "latest of a group", "latest_of_a_group")

const wouldTell = "is hidden, and this would tell something about its value"

// TestNothingTellsWhatIsHidden: each key of the language that reads an attribute is refused where the attribute is
// hidden, and only because it is. A key or a part of the plan that is new fails the test until it has a reading.
func TestNothingTellsWhatIsHidden(t *testing.T) {
	covered, reached := map[string]bool{}, map[string]bool{}
	for _, r := range readings() {
		for _, key := range strings.Fields(nouns.Replace(r.keys)) {
			covered[key] = true
		}
		open, err := Parse("m.yaml", []byte(r.fill(false)))
		if err != nil {
			t.Errorf("%s: with nothing hidden: %v", r.keys, err)
			continue
		}
		reach(reflect.ValueOf(open), "Model", map[uintptr]bool{}, reached)
		if _, err := Parse("m.yaml", []byte(r.fill(true))); err == nil || !strings.Contains(err.Error(), wouldTell) {
			t.Errorf("%s reads a hidden attribute, and lint says: %v\n%s", r.keys, err, r.marks)
		}
	}
	for _, key := range tellNothing {
		covered[key] = true
	}
	for shape, def := range schemaDefs(t) {
		shape = strings.ReplaceAll(shape, "-", "_")
		for key := range def.Properties {
			if !covered[shape+"."+key] && !covered[shape+".*"] {
				t.Errorf("%s.%s has no reading of a hidden attribute, and is not said to read none", shape, key)
			}
		}
	}
	all := map[string]bool{}
	holders(reflect.TypeFor[Model](), map[reflect.Type]bool{}, all)
	for _, at := range slices.Sorted(maps.Keys(all)) {
		if !reached[at] && tellsNone[at] == "" {
			t.Errorf("no reading has a hidden attribute at %s", at)
		}
	}
}

// tellsNone are parts of the plan that hold a field or an attribute, and need no reading of their own.
var tellsNone = map[string]string{
	"Others.Field": "is in a key", "Others.Links": "are in a key",
	"Status.Attr": "is what moves, and may be hidden", "Unfit.Field": "is of letters",
	"Table.kind": "is of a where of the entity", "Entity.kind": "is of a where of the entity", "factor.field": "is in the fields of the amount",
	"Entity.Formulas": "are hidden if they read something hidden", "Formula.own": "is hidden if it reads something hidden",
	"Once.Row": "is read back from the row with the idempotency key", "Supersede.List": "is written", "Making.Where": "",
}

// holders collects the parts of the plan, as Type.field, that hold a field or an attribute.
func holders(typ reflect.Type, seen map[reflect.Type]bool, out map[string]bool) {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice || typ.Kind() == reflect.Map {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || seen[typ] || !strings.HasSuffix(typ.PkgPath(), "internal/model") {
		return
	}
	seen[typ] = true
	for i := range typ.NumField() {
		f := typ.Field(i)
		elem := f.Type
		for elem.Kind() == reflect.Slice {
			elem = elem.Elem()
		}
		if elem == reflect.TypeFor[*Field]() || elem == reflect.TypeFor[*Attribute]() && f.Name != "Attributes" {
			out[typ.Name()+"."+f.Name] = true
		}
		holders(f.Type, seen, out)
	}
}

// reach collects the parts of a plan that hold a field or an attribute whose name begins with secret.
func reach(v reflect.Value, at string, seen map[uintptr]bool, out map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return
		}
		if f := v.Type(); f == reflect.TypeFor[*Field]() || f == reflect.TypeFor[*Attribute]() {
			if strings.HasPrefix(v.Elem().FieldByName("Name").String(), "secret") {
				out[at] = true
			}
		}
		if seen[v.Pointer()] {
			return
		}
		seen[v.Pointer()] = true
		reach(v.Elem(), at, seen, out)
	case reflect.Slice:
		for i := range v.Len() {
			reach(v.Index(i), at, seen, out)
		}
	case reflect.Struct:
		if !strings.HasSuffix(v.Type().PkgPath(), "internal/model") {
			return
		}
		for i := range v.NumField() {
			reach(v.Field(i), v.Type().Name()+"."+v.Type().Field(i).Name, seen, out)
		}
	}
}

// TestHiddenGoesIntoHidden: a hidden value may be taken where the attribute that takes it is hidden too.
func TestHiddenGoesIntoHidden(t *testing.T) {
	const made = ", kept: {type: string, hidden: true}, keptNumber: {type: number, hidden: true}, keptMap: {type: map, hidden: true}"
	for i, r := range []construct{
		{"", []string{"entity", "once: {of: Made, key: text, set: {m: text, id: id, kept: secret}}", "made", made}},
		{"", []string{"attribute", "end: {type: number, hidden: true, from: secretTime, plus: {secretWord: {one: 24h, two: 48h}}}"}},
		{"", []string{"attribute", "end: {type: number, hidden: true, default: {secretWord: {one: 1}}}"}},
		{"", []string{"entity", "new: {secret: $uuid}"}},
		{"", []string{"rest", "derive:\n  A.n: {distinct: B.secret, max: 5, hidden: true}"}},
		{"", []string{"made", made, "rest", "derive:\n  Made: {row: B, set: {id: id, m: b, kept: secret, keptMap: {deep: secret}}}"}},
		{"", []string{"made", made, "rest", "derive:\n  Made: {row: B, set: {id: id, m: b, kept: {follow: A.secret, by: {id: id}}}}"}},
		{"", []string{"sums", ", keptNumber: {type: number, hidden: true}", "rest", "derive:\n  Sums: {group: B, by: {id: id, m: b}, set: {number: count, keptNumber: {sum: secretNumber}}}"}},
		{"", []string{"rest", "derive:\n  A.word: {steps: {two: {when: B, set: {text: text, secret: secret, secretNumber: secretNumber}}}}"}},
		{"", []string{"rest", "migrate:\n  m: {rows: Old, into: {B: {secret: secret, b: b}}}"}},
	} {
		if _, err := Parse("m.yaml", []byte(r.fill(true))); err != nil && strings.Contains(err.Error(), wouldTell) {
			t.Errorf("%d: %v", i, err)
		}
	}
}

// TestHiddenIsOfTheDefinition: what history leaves out of images is part of its definition, and of no other.
func TestHiddenIsOfTheDefinition(t *testing.T) {
	for set, changes := range map[string]bool{"map: $new": true, "map: {deep: $old}": true, "map: $key": false} {
		text := construct{"", []string{"rest", fmt.Sprintf("derive:\n  Made: {row: B, keep: [insert, modify], set: {id: id, m: $position, %s}}", set)}}
		is, was := mustParse(t, "hidden", text.fill(true)), mustParse(t, "hidden", text.fill(false))
		if got := is.Derivations()[0].Hash != was.Derivations()[0].Hash; got != changes {
			t.Errorf("set: {%s}: hiding an attribute changes the definition: %v", set, got)
		}
	}
}

// TestPathsStopAtHidden: of a path in a text, or of a pointer, nothing is left behind the name of a hidden attribute.
func TestPathsStopAtHidden(t *testing.T) {
	text := construct{"", []string{"attribute", "secretMap: {type: map, hidden: true}\n      a.secret: {type: map, hidden: true}"}}
	m, open := mustParse(t, "hidden", text.fill(true)), mustParse(t, "hidden", text.fill(false))
	for path, want := range map[string]string{
		"NewImage.secretMap.MARK":                 "NewImage.secretMap",
		"NewImage.secretMap.a[3].MARK":            "NewImage.secretMap",
		`NewImage.secretMap."MARK. [1] \"MARK\""`: "NewImage.secretMap",
		"NewImage.secretMap.MARK:MARK\tMARK":      "NewImage.secretMap",
		"OldImage.secretList[4711]":               "OldImage.secretList",
		`NewImage."a.secret".MARK`:                "NewImage." + HiddenText,
		"NewImage.list[0].secretMap.MARK":         "NewImage.list[0].secretMap",
		"secretMap.MARK":                          "secretMap",
		"NewImage.list[0].text":                   "NewImage.list[0].text",
		"NewImage.text.secretNot":                 "NewImage.text.secretNot",
	} {
		const why = ": N: expected a string, found a number of 1.5"
		if got := m.ShownText("one.jsonl: " + path + why); got != "one.jsonl: "+want+why {
			t.Errorf("%s is shown as %s", path, got)
		}
		if got := open.ShownText(path); got != path {
			t.Errorf("where nothing is hidden, %s is shown as %s", path, got)
		}
	}
	for at, want := range map[string]string{"/secretMap/MARK/0": "/secretMap", "/list/0/secretMap/MARK": "/list/0/secretMap", "/list/0/text": "/list/0/text", "/a.secret/x": "/a.secret", "": ""} {
		if got, hides := m.ShownPointer(at); got != want || hides != strings.Contains(want, "secret") {
			t.Errorf("%s is shown as %s, %v", at, got, hides)
		}
	}
}
