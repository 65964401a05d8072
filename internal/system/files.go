package system

import "weir/internal/openfiles"

// servedCalls is what a system over services keeps open beside what requests need:
// connections of followers, and files of what they have read.
const servedCalls = 128

// OpenFiles is what the system keeps files open for while it is served.
func (s *System) OpenFiles() openfiles.Need { return s.need }
