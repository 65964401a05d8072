package value

import (
	"pgregory.net/rapid"
)

// decimals are texts of decimals that DynamoDB takes, in any notation.
var decimals = rapid.OneOf(
	rapid.StringMatching(`[+-]?(0|[1-9][0-9]{0,37})`),
	rapid.StringMatching(`-?[0-9]{1,19}\.[0-9]{1,19}`),
	rapid.StringMatching(`-?0{0,3}\.0{0,40}[1-9][0-9]{0,20}`),
	rapid.StringMatching(`-?[0-9]{1,10}(\.[0-9]{1,10})?[eE][+-]?[0-9]{1,2}`),
	rapid.StringMatching(`-?[1-9][0-9]{0,9}0{0,60}`),
)

var numberValues = rapid.Map(decimals, MustNumber)

// anyValue is a value nested up to depth levels.
func anyValue(depth int) *rapid.Generator[Value] {
	return rapid.Custom(func(t *rapid.T) Value {
		kind := Kind(rapid.IntRange(int(Null), int(BinarySet)).Draw(t, "kind"))
		set := func(g *rapid.Generator[Value]) Value {
			var elems []Attr
			for _, v := range rapid.SliceOfNDistinct(g, 0, 8, Value.Text).Draw(t, "elements") {
				elems = append(elems, Attr{Value: v})
			}
			v, ok := OfElements(kind, elems)
			if !ok {
				t.Fatalf("a %v of %v is refused", kind, elems)
			}
			return v
		}
		str, bin := rapid.Map(rapid.String(), OfString), rapid.Map(rapid.String(), OfBinary)
		switch kind {
		case Null:
			return OfNull()
		case Bool:
			return OfBool(rapid.Bool().Draw(t, "bool"))
		case Number:
			return numberValues.Draw(t, "number")
		case Binary:
			return bin.Draw(t, "binary")
		case StringSet:
			return set(str)
		case NumberSet:
			return set(numberValues)
		case BinarySet:
			return set(bin)
		}
		if depth > 0 && kind == List {
			return OfList(rapid.SliceOfN(anyValue(depth-1), 0, 4).Draw(t, "list")...)
		}
		if depth > 0 && kind == Map {
			return OfMap(anyItem(depth-1).Draw(t, "map"))
		}
		return str.Draw(t, "string")
	})
}

func anyItem(depth int) *rapid.Generator[Item] {
	return rapid.Custom(func(t *rapid.T) Item {
		var attrs []Attr
		for _, name := range rapid.SliceOfN(rapid.String(), 0, 8).Draw(t, "names") {
			attrs = append(attrs, Attr{Name: name, Value: anyValue(depth).Draw(t, "value")})
		}
		return NewItem(attrs...)
	})
}
