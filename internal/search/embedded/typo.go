package embedded

import "unicode/utf8"

// oneEdit is an automaton that accepts the words within one edit of a word: one letter
// removed, added or replaced, or two neighbours swapped. Letters are runes. It exists
// because scorch's own automaton misses words of more than 32 bytes that are not ASCII.
//
// A state says how many letters were read (k), and in which ways they can be the
// beginning of a word within one edit. It also holds the bytes of an incomplete letter.
// It is 0 if there is no such way.
type oneEdit struct{ word []rune }

const (
	same     = 1 << iota // they are the first k letters of the word
	added                // one of them is too many: k-1 letters of the word
	replaced             // one is another, or two were swapped: k letters
	lost                 // one is missing: k+1 letters
	swapping             // the last came too early, its neighbour must be next
)

const (
	wayBits     = 5
	pendingBits = 26 // a count of two bits and three bytes
)

// Start, CanMatch, WillAlwaysMatch, IsMatch and Accept are vellum's automaton. A state is one
// number, so a search allocates nothing for it.
func (a oneEdit) Start() int { return same << pendingBits }

func (a oneEdit) CanMatch(state int) bool { return state != 0 }

func (a oneEdit) WillAlwaysMatch(int) bool { return false }

// IsMatch reports whether the bytes read so far are the word with at most one edit. In the middle
// of a character they are not.
func (a oneEdit) IsMatch(state int) bool {
	if state&(1<<pendingBits-1) != 0 {
		return false
	}
	state >>= pendingBits
	k, n, ways := state>>wayBits, len(a.word), state&(1<<wayBits-1)
	return ways&same != 0 && (k == n || k == n-1) || ways&added != 0 && k-1 == n || ways&replaced != 0 && k == n || ways&lost != 0 && k+1 == n
}

// Accept reads a byte.
func (a oneEdit) Accept(state int, b byte) int {
	pending := state & (1<<pendingBits - 1)
	state >>= pendingBits
	if pending == 0 && b < utf8.RuneSelf {
		return a.readLetter(state, rune(b)) << pendingBits
	}
	count := pending >> 24
	bytes := [utf8.UTFMax]byte{byte(pending), byte(pending >> 8), byte(pending >> 16)}
	bytes[count] = b
	if letter := bytes[:count+1]; utf8.FullRune(letter) {
		r, size := utf8.DecodeRune(letter)
		if r == utf8.RuneError || size != len(letter) {
			return 0
		}
		return a.readLetter(state, r) << pendingBits
	}
	return state<<pendingBits | (count+1)<<24 | int(bytes[0]) | int(bytes[1])<<8 | int(bytes[2])<<16
}

// readLetter reads a letter.
// A state is the number of letters read, and the ways in which these can still be the word with at
// most one mistake. 0 is dead. Swapped neighbours count as one mistake.
func (a oneEdit) readLetter(state int, c rune) int {
	k, ways := state>>wayBits, state&(1<<wayBits-1)
	is := func(i int) bool { return i >= 0 && i < len(a.word) && a.word[i] == c }
	next := 0
	if ways&same != 0 {
		next |= added
		if k < len(a.word) {
			next |= replaced
		}
		if is(k) {
			next |= same
		}
		if is(k + 1) {
			next |= lost | swapping
		}
	}
	if ways&added != 0 && is(k-1) {
		next |= added
	}
	if ways&replaced != 0 && is(k) || ways&swapping != 0 && is(k-1) {
		next |= replaced
	}
	if ways&lost != 0 && is(k+1) {
		next |= lost
	}
	if next == 0 {
		return 0
	}
	return (k+1)<<wayBits | next
}
