package system

import "weir/internal/openfiles"

// OpenFiles is what the system keeps files open for while it is served.
func (s *System) OpenFiles() openfiles.Need { return s.need }
