// This file divides the file descriptors that a process may have. It reserves those of
// the store and the indexes first; servers accept as many connections as the rest allows.
// Without this, a client that only opens connections could take the descriptor that the store
// needs for its next file, and a store that cannot write ends the process.

package memory

import (
	"errors"
	"fmt"
)

// unlimited stands for more files than any process here will open.
const unlimited = 1 << 20

// How many descriptors are reserved. These are generous estimates; no load test has confirmed
// them.
const (
	process  = 32 // stdin to stderr, the runtime, listeners, a file of a model or of keys being read
	store    = 40 // beside its tables: logs, its manifest, files that compactions write
	perIndex = 64 // segments, of which merges leave a few dozen, and its root

	mostTables   = 512
	fewestTables = 74 // Pebble's own least
)

// fewest is the smallest number of connections for which it is worth to start a server.
const fewest = 16

// Need lists the needs of open files besides connections.
type Need struct {
	Store   bool // an embedded store
	Indexes int  // embedded indexes
	Calls   int  // connections to services, and files of records that were read from them
}

// Tables returns how many table files an embedded store may have open: a quarter of the files that the system
// allows the process, between Pebble's need and the number that still makes it faster. A store with more tables
// opens and closes them as it goes.
func Tables() int { return tables(limit()) }

func tables(limit int) int { return min(max(limit/4, fewestTables), mostTables) }

// Left returns how many connections the process may accept besides its needs. The error
// says which system limit is too low.
func Left(n Need) (int, error) { return left(limit(), n) }

// ErrFew says that the system allows the process too few open files.
var ErrFew = errors.New("too few open files")

// Check returns an error that wraps ErrFew if the process may not have its files open without connections. A
// store that cannot open its next file waits for ever, or ends the process.
func Check(n Need) error { return check(limit(), n) }

func check(limit int, n Need) error {
	if need := n.files(limit); limit < need {
		return fmt.Errorf("%w: a process may have %d files open here, and this one needs %d: raise it with ulimit -n %d", ErrFew, limit, need, need+256)
	}
	return nil
}

// files is how many files are needed without connections.
func (n Need) files(limit int) int {
	need := process + n.Indexes*perIndex + n.Calls
	if n.Store {
		need += store + tables(limit)
	}
	return need
}

// left is Left for a system that allows the process so many open files. The error names the
// least value that suffices, with 256 to spare.
func left(limit int, n Need) (int, error) {
	need := n.files(limit)
	if limit-need < fewest {
		return 0, fmt.Errorf("a process may have %d files open here, and this one needs %d and %d connections: raise it with ulimit -n %d, or where the service is defined", limit, need, fewest, need+256)
	}
	return limit - need, nil
}
