package owntable

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"

	"weir/internal/store"
	"weir/internal/value"
)

// A ledger has a skip for each latest of its target: a range of names in which no fact holds, so that
// facts that were withdrawn are not read each time. Facts that were put within it since make holes in it.
// A ledger has at most mostHoles of them for an attribute, and as many as keep it below skipRoom bytes: if there
// are more, the skip ends where the last hole begins.
const (
	mostHoles  = 8
	skipRoom   = 900       // a ledger of up to 1 KB takes one write unit
	ledgerRoom = 100 << 10 // a ledger that would be larger gets no skip
)

// Skip says that no fact from Begin on and before End holds, of those that decide an attribute,
// except in the ranges But, which are in order. Without End there is none.
type Skip struct {
	Attr, Begin, End string
	But              []Names
}

// Names are all names from one on and before another.
type Names struct{ From, Below string }

// has reports whether a name is among these.
func (n Names) has(name string) bool { return n.From <= name && name < n.Below }

// afterName is above each name that begins with another, and below all that come after that one.
const afterName = "g"

// NamesOf returns the range of one name. No name begins with another.
func NamesOf(name string) Names { return Names{name, name + afterName} }

// Skip returns the skip of an attribute.
func (l LedgerRow) Skip(attr string) Skip {
	is := value.Item(l)
	s := Skip{Attr: attr, Begin: opposite.Replace(is.Get(ledgerBegin + attr).Text()), End: is.Get(ledgerSkip + attr).Text()}
	but, ok := namesFrom(is.Get(ledgerBut + attr).Text())
	if s.But = but; !ok {
		return Skip{Attr: attr} // damaged: all is read
	}
	return s
}

// CutSkip returns the skip of an attribute with a hole for each of some facts that is within it. within is false if
// none is.
func (l LedgerRow) CutSkip(attr string, names []string) (s Skip, within bool) {
	s = l.Skip(attr)
	for _, name := range names {
		if !(Names{s.Begin, s.End}).has(name) {
			continue
		}
		within = true
		if !slices.ContainsFunc(s.But, func(n Names) bool { return n.has(name) }) {
			s.But = append(s.But, NamesOf(name))
		}
	}
	slices.SortFunc(s.But, func(a, b Names) int { return strings.Compare(a.From, b.From) })
	return l.fitSkip(s), within
}

// fitSkip returns the skip, or its first part for which the ledger has room.
func (l LedgerRow) fitSkip(s Skip) Skip {
	others := value.Item(l).With(newAttr(ledgerBegin+s.Attr, value.Value{}), newAttr(ledgerSkip+s.Attr, value.Value{}), newAttr(ledgerBut+s.Attr, value.Value{})).Size()
	for n := len(s.But); n > 0 && (n > mostHoles || others+s.size() > skipRoom); n = len(s.But) {
		s.End, s.But = s.But[n-1].From, s.But[:n-1]
	}
	if s.End <= s.Begin || others+s.size() > ledgerRoom {
		return Skip{Attr: s.Attr}
	}
	return s
}

// size is how many bytes the skip takes in a ledger.
func (s Skip) size() int {
	return 3*(len(ledgerSkip)+len(s.Attr)) + len(s.Begin) + len(s.End) + len(namesText(s.But))
}

// ops write the skip. Its beginning stands there in the opposite order, because a condition can
// ask for nodes below a value, and not for those above.
func (s Skip) ops() []store.Op {
	if s.End == "" {
		return []store.Op{removeAttr(ledgerBegin + s.Attr), removeAttr(ledgerSkip + s.Attr), removeAttr(ledgerBut + s.Attr)}
	}
	but := value.Value{}
	if len(s.But) > 0 {
		but = value.OfBinary(namesText(s.But))
	}
	return []store.Op{
		setAttr(ledgerBegin+s.Attr, value.OfString(opposite.Replace(s.Begin))), setAttr(ledgerSkip+s.Attr, value.OfString(s.End)),
		store.Assign(ledgerBut+s.Attr, but),
	}
}

// SameSkip is the condition that a skip is as it was read.
func (l LedgerRow) SameSkip(attr string) (cond store.Cond) {
	for _, part := range []string{ledgerBegin, ledgerSkip, ledgerBut} {
		cond = append(cond, []store.Test{store.AsRead(part+attr, value.Item(l).Get(part+attr))})
	}
	return cond
}

// MoveSkip sets a skip, or as much of it as there is room for, on condition that the ledger has the version under
// which the facts were read: a worker that puts a fact raises the version afterwards.
func (l LedgerRow) MoveSkip(at store.Ref, to Skip) store.Write {
	return store.Write{Ref: at, Ops: l.fitSkip(to).ops(), If: store.Cond{l.sameVersion()}}
}

// namesText packs ranges. Names are hexadecimal, so they are written as bytes, after their number; the end
// of a range of one name is left out.
func namesText(all []Names) string {
	var b []byte
	put := func(name string) {
		raw, _ := hex.DecodeString(name)
		b = append(binary.AppendUvarint(b, uint64(len(raw))), raw...)
	}
	for _, n := range all {
		if put(n.From); n == NamesOf(n.From) {
			put("")
		} else {
			put(n.Below)
		}
	}
	return string(b)
}

// namesFrom unpacks them. ok is false for any other text.
func namesFrom(text string) (all []Names, ok bool) {
	b := []byte(text)
	take := func() (name string, ok bool) {
		n, used := binary.Uvarint(b)
		if used <= 0 || n > uint64(len(b)-used) {
			return "", false
		}
		name, b = hex.EncodeToString(b[used:used+int(n)]), b[used+int(n):]
		return name, true
	}
	for len(b) > 0 {
		from, ok := take()
		if !ok || from == "" {
			return nil, false
		}
		below, ok := take()
		if !ok {
			return nil, false
		}
		if n := (Names{from, below}); below != "" {
			all = append(all, n)
		} else {
			all = append(all, NamesOf(from))
		}
	}
	return all, true
}
