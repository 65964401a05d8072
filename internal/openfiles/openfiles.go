// Package openfiles divides the file descriptors that a process may have. What is
// durable comes first: the store and the indexes have theirs set aside, and servers
// take as many connections as the rest allows. Without that, a client that only opens
// connections takes the descriptor that the store needs to write its next file, and a
// store that cannot write ends the process.
package openfiles

import "fmt"

// What is set aside: estimates with room, which no load has been measured against.
const (
	process  = 32 // stdin to stderr, the runtime, listeners, a file of a model or of keys being read
	store    = 40 // beside its tables: logs, its manifest, files that compactions write
	perIndex = 64 // segments, of which merges leave a few dozen, and its root

	mostTables   = 512
	fewestTables = 74 // Pebble's own least
)

// Fewest is how many connections are worth serving.
const Fewest = 16

// Need is what keeps files open beside connections.
type Need struct {
	Store   bool // an embedded store
	Indexes int  // embedded indexes
	Calls   int  // connections to services, and files of what was read from them
}

// Tables is how many files of tables an embedded store may have open.
func Tables() int { return tables(limit()) }

func tables(limit int) int { return min(max(limit/4, fewestTables), mostTables) }

// Left is how many connections the process may take beside what it needs, or an error
// that says which limit of the system is too low.
func Left(n Need) (int, error) { return left(limit(), n) }

func left(limit int, n Need) (int, error) {
	need := process + n.Indexes*perIndex + n.Calls
	if n.Store {
		need += store + tables(limit)
	}
	if limit-need < Fewest {
		return 0, fmt.Errorf("a process may have %d files open here, and this one needs %d and %d connections: raise it with ulimit -n %d, or where the service is defined", limit, need, Fewest, need+256)
	}
	return limit - need, nil
}
