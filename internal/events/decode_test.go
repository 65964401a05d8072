package events

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"weir/internal/value"
)

// jsonText writes random JSON: any layout, any way to write a character.
type jsonText struct {
	strings.Builder
	rng *rand.Rand
}

func (j *jsonText) space() {
	if j.rng.IntN(8) == 0 {
		j.WriteString([]string{" ", "\n", "\t", "\r\n  ", "                  "}[j.rng.IntN(5)])
	}
}

func (j *jsonText) punct(s string) {
	j.space()
	j.WriteString(s)
	j.space()
}

// string writes s with some of its characters escaped.
func (j *jsonText) string(s string) {
	j.WriteByte('"')
	for i, r := range s {
		switch {
		case r == '"' || r == '\\':
			j.WriteString("\\" + string(r))
		case r < ' ' || j.rng.IntN(20) == 0:
			if r > 0xffff {
				r -= 0x10000
				fmt.Fprintf(j, `\u%04x\u%04X`, 0xd800+r>>10, 0xdc00+r&0x3ff)
			} else {
				fmt.Fprintf(j, `\u%04x`, r)
			}
		case r == '/' && j.rng.IntN(2) == 0:
			j.WriteString(`\/`)
		case r == '\ufffd' && s[i] != 0xef:
			j.WriteByte(s[i]) // a byte that is not UTF-8, as it stands
		default:
			j.WriteRune(r)
		}
	}
	j.WriteByte('"')
}

func (j *jsonText) list(n int, each func(i int)) {
	j.punct("[")
	for i := range n {
		if i > 0 {
			j.punct(",")
		}
		each(i)
	}
	j.punct("]")
}

// item writes an item's attributes in any order.
func (j *jsonText) item(it value.Item) {
	j.punct("{")
	for k, i := range j.rng.Perm(len(it)) {
		if k > 0 {
			j.punct(",")
		}
		j.string(it[i].Name)
		j.punct(":")
		j.value(it[i].Value)
	}
	j.punct("}")
}

func (j *jsonText) value(v value.Value) {
	j.punct("{")
	j.string(v.Kind().Descriptor())
	j.punct(":")
	scalar := func(v value.Value) {
		if v.Kind() == value.Binary {
			j.string(base64.StdEncoding.EncodeToString([]byte(v.Text())))
		} else {
			j.string(v.Text())
		}
	}
	switch v.Kind() {
	case value.Null:
		j.WriteString("true")
	case value.Bool:
		fmt.Fprint(j, v.Bool())
	case value.String, value.Number, value.Binary:
		scalar(v)
	case value.Map:
		j.item(v.Item())
	case value.List:
		j.list(v.Len(), func(i int) { j.value(v.At(i)) })
	default:
		order := j.rng.Perm(v.Len())
		j.list(v.Len(), func(i int) { scalar(v.At(order[i])) })
	}
	j.punct("}")
}

// hostile are strings that have gone wrong in other programs.
var hostile = []string{
	"", " ", "\x00", "\u2028", "\ufeff", "\U0001F600", "\U0010FFFF", "é", "e\u0301", "旅", "\xff", "\xc3\x28", "\xed\xa0\x80", "\xf4\x90\x80\x80",
	`"`, `\`, "/", `\u0041`, "<script>", "ſ", "K", "\x1f", "\x7f", "a\tb\nc", "12345678", "1234567\"", "1234567\\", "S", "N", "__proto__",
}

var texts = rapid.OneOf(rapid.String(), rapid.StringN(0, 20, 60), rapid.SampledFrom(hostile), rapid.Custom(func(t *rapid.T) string {
	return strings.Join(rapid.SliceOfN(rapid.SampledFrom(hostile), 0, 6).Draw(t, "parts"), "")
}))

var numbers = rapid.Custom(func(t *rapid.T) value.Value {
	return value.MustNumber(rapid.OneOf(
		rapid.StringMatching(`-?(0|[1-9][0-9]{0,37})`), rapid.StringMatching(`-?[0-9]{1,10}\.[0-9]{1,20}`), rapid.StringMatching(`-?[0-9]{1,5}[eE][+-]?[0-9]{1,2}`),
	).Draw(t, "number"))
})

func values(depth int) *rapid.Generator[value.Value] {
	return rapid.Custom(func(t *rapid.T) value.Value {
		kind := value.Kind(rapid.IntRange(int(value.Null), int(value.BinarySet)).Draw(t, "kind"))
		if depth == 0 && (kind == value.Map || kind == value.List) {
			kind = value.String
		}
		set := func(g *rapid.Generator[value.Value]) value.Value {
			var elems []value.Attr
			for _, v := range rapid.SliceOfNDistinct(g, 1, 6, value.Value.Text).Draw(t, "elements") {
				elems = append(elems, value.Attr{Value: v})
			}
			v, ok := value.OfElements(kind, elems)
			if !ok {
				t.Fatalf("a set of %v is refused", elems)
			}
			return v
		}
		// What is not UTF-8 cannot be written in JSON; it comes back replaced.
		str := rapid.Map(texts, func(s string) value.Value { return value.OfString(strings.ToValidUTF8(s, "?")) })
		bin := rapid.Map(texts, value.OfBinary)
		switch kind {
		case value.Null:
			return value.OfNull()
		case value.Bool:
			return value.OfBool(rapid.Bool().Draw(t, "bool"))
		case value.Number:
			return numbers.Draw(t, "number")
		case value.Binary:
			return bin.Draw(t, "binary")
		case value.StringSet:
			return set(str)
		case value.NumberSet:
			return set(numbers)
		case value.BinarySet:
			return set(bin)
		case value.List:
			return value.OfList(rapid.SliceOfN(values(depth-1), 0, 4).Draw(t, "list")...)
		case value.Map:
			return value.OfMap(items(depth-1).Draw(t, "map"))
		}
		return str.Draw(t, "string")
	})
}

func items(depth int) *rapid.Generator[value.Item] {
	return rapid.Custom(func(t *rapid.T) value.Item {
		var attrs []value.Attr
		for _, name := range rapid.SliceOfN(texts, 0, 8).Draw(t, "names") {
			attrs = append(attrs, value.Attr{Name: strings.ToValidUTF8(name, "?"), Value: values(depth).Draw(t, "value")})
		}
		return value.NewItem(attrs...)
	})
}

// Whatever an item holds, and however its JSON is written, it is read as it is,
// and as encoding/json reads it.
func TestDecodeAnyItem(t *testing.T) {
	compared := 0
	rapid.Check(t, func(t *rapid.T) {
		j := jsonText{rng: rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))}
		var want []Record
		n := rapid.IntRange(1, 3).Draw(t, "records")
		j.punct("{")
		j.string("Records")
		j.punct(":")
		j.list(n, func(i int) {
			key := value.NewItem(value.Attr{Name: "k", Value: value.OfString(texts.Filter(func(s string) bool { return s != "" && s == strings.ToValidUTF8(s, "") }).Draw(t, "key"))})
			rec := Record{Keys: key, Position: PositionOf(uint64(i + 1))}
			rec.Old, rec.New = items(3).Draw(t, "old").With(key...), items(3).Draw(t, "new").With(key...)
			want = append(want, rec)
			j.punct("{")
			j.WriteString(`"eventName":"MODIFY",`)
			j.string("dynamodb")
			j.punct(":")
			j.punct("{")
			for _, image := range []struct {
				name string
				it   value.Item
			}{{"Keys", rec.Keys}, {"OldImage", rec.Old}, {"NewImage", rec.New}} {
				j.string(image.name)
				j.punct(":")
				j.item(image.it)
				j.punct(",")
			}
			fmt.Fprintf(&j, `"SequenceNumber":"%s"}}`, rec.Position)
		})
		j.punct("}")
		event, err := DecodeLambda([]byte(j.String()))
		if err != nil || len(event.Entries) != n {
			t.Fatalf("%d entries, %v of %s", len(event.Entries), err, j.String())
		}
		for i, e := range event.Entries {
			if diff := cmp.Diff(describe(Entry{Record: want[i]}), describe(Entry{Record: e.Record, Bad: e.Bad})); diff != "" {
				t.Fatalf("%s\nof %s", diff, j.String())
			}
			if !value.EqualItems(e.Record.New, want[i].New) || !value.EqualItems(e.Record.Old, want[i].Old) {
				t.Fatalf("an image differs from what was written: %s", j.String())
			}
		}
		compared += compareDecoders(t, []byte(j.String()))
	})
	if compared == 0 {
		t.Error("no record was compared with encoding/json")
	}
}

// Of an attribute that is there twice the later one stays, however many there are.
func TestDecodeTwice(t *testing.T) {
	for _, n := range []int{1, 5, 100, 1000} {
		var names, want []string
		for i := range n {
			names = append(names, fmt.Sprintf(`"name%04d":{"N":"%d"}`, (i*7919)%n, i))
		}
		twice := append([]string{`"name0000":{"S":"early"}`}, names...)
		var p scanner
		p.resetTo([]byte("{"+strings.Join(twice, ",")+"}"), 0)
		it := p.readItem(0)
		for i := range n {
			want = append(want, fmt.Sprintf("name%04d", i))
		}
		var got []string
		for _, a := range it {
			got = append(got, a.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" || it.Get("name0000").Kind() != value.Number {
			t.Errorf("%d: %s %v", n, diff, it.Get("name0000"))
		}
	}
}

func TestDecodeLambdaWindow(t *testing.T) {
	event, err := DecodeLambda([]byte(`{"Records":[` + streamRecord(1) + `],"window":{"start":"2020-07-30T17:00:00Z","end":"2020-07-30T17:05:00Z"},` +
		`"state":{"1":"state1"},"shardId":"shard123","eventSourceARN":"stream-ARN","isFinalInvokeForWindow":true,"isWindowTerminatedEarly":false}`))
	want := WindowInfo{Shard: "shard123", Start: "2020-07-30T17:00:00Z", End: "2020-07-30T17:05:00Z", State: []byte(`{"1":"state1"}`), Final: true}
	if diff := cmp.Diff(want, event.WindowInfo); err != nil || diff != "" || len(event.Entries) != 1 {
		t.Error(err, diff)
	}
}

func TestDecodeLambdaBad(t *testing.T) {
	event, err := DecodeLambda([]byte(`{"Records":[` + streamRecord(1) + `,` + strings.Replace(streamRecord(2), `"N":"2"`, `"N":"two"`, 1) + `,` + streamRecord(3) + `]}`))
	if err != nil || len(event.Entries) != 3 {
		t.Fatal(err, event)
	}
	bad := event.Entries[1]
	if bad.Bad == nil || bad.Record.Position.String() != "200000000000000000001" || bad.Record.Table != "things" || bad.Record.Keys == nil || bad.File != "" {
		t.Errorf("%+v", bad)
	}
	if got := bad.Location.String(); got != "line 1 (byte 442)" {
		t.Error(got)
	}
	if _, err := DecodeLambda([]byte(`{"detail":{}}`)); err == nil || !strings.HasPrefix(err.Error(), `the payload: holds no stream records: line 1: an object with "detail"`) {
		t.Error(err)
	}
}
