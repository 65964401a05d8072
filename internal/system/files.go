package system

import "weir/internal/openfiles"

// servedCalls is what a system over services keeps open beside what requests need:
// connections of followers, and files of what they have read.
const servedCalls = 128

// OpenFiles is what the system keeps files open for while it is served.
func (s *System) OpenFiles() openfiles.Need {
	n := openfiles.Need{Store: s.rows != nil}
	if s.rows == nil {
		n.Calls = servedCalls
	}
	if _, ok := s.index.(local); ok {
		n.Indexes = len(s.schemas)
	} else if s.index != nil {
		n.Calls = servedCalls
	}
	return n
}
