package embedded

// arena keeps copies of bytes until reset. A copy never moves.
// It is used by one goroutine at a time. The zero arena is ready to use.
type arena struct {
	block []byte // the current block; earlier ones belong to the users of their copies
	used  int    // bytes in all blocks
}

const (
	// How large the first block is, and the largest that a reset keeps.
	arenaBlock = 256 << 10
	// arenaKeep is the size of the largest block that is kept for the next use.
	arenaKeep = 2 << 20
)

// copy copies b into the arena. The copy is valid until the arena is reset; it has no spare
// capacity, so an append moves it.
func (a *arena) copy(b []byte) []byte {
	if b == nil {
		return nil
	}
	if len(b) > cap(a.block)-len(a.block) {
		a.block = make([]byte, 0, max(arenaBlock, min(2*cap(a.block), arenaKeep), len(b)))
	}
	start := len(a.block)
	a.block = append(a.block, b...)
	a.used += len(b)
	return a.block[start:len(a.block):len(a.block)]
}

// reset makes all copies invalid, and keeps one block for the next use.
func (a *arena) reset() {
	if cap(a.block) > arenaKeep {
		a.block = nil
	}
	a.block, a.used = a.block[:0], 0
}
