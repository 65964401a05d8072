package system

import "weir/internal/openfiles"

// OpenFiles returns what the system needs open files for while it serves.
func (s *System) OpenFiles() openfiles.Need { return s.need }
