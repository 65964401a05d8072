// Package memory says how much a process may have resident, and how that is divided.
//
// One rule divides it. Of every 256 MB, the process aims at 246 resident: its heap, and
// the files that are mapped beside it, which are the program and the index. The heap gets
// the rest beside the files, and never less than 180 of every 256 MB: with less it is collected
// without end. A process that has less than 256 MB prefers its size to its speed, because
// the program does not shrink with it: its heap may get as little as 120 of every 256. The
// caches of the embedded store are shares of the same kind, which its Options list.
package memory

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Size is the memory of a process in bytes. The zero Size is Default.
type Size int64

const (
	MB Size = 1 << 20
	GB Size = 1 << 30

	Default = 256 * MB
	// Least is the smallest Size that was measured to hold (docs/performance.md).
	Least = 128 * MB
	// most is more than a machine has.
	most = 4096 * GB
)

// These are shares of Default; see the package.
const (
	aim   = 246 * MB
	heap  = 180 * MB
	small = 120 * MB // the heap of a process that has less than Default
)

// Parse reads a size: a number of bytes, or one with MB or GB behind it, which are
// powers of 1,024. A size below Least, or one that does not fit, is an error that names one that does.
func Parse(text string) (Size, error) {
	number, unit := strings.ToUpper(strings.TrimSpace(text)), Size(1)
	for suffix, u := range map[string]Size{"MB": MB, "GB": GB} {
		if n, ok := strings.CutSuffix(number, suffix); ok {
			number, unit = strings.TrimRight(n, " "), u
			break
		}
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || number[0] == '+' {
		return 0, fmt.Errorf("%q is not a size: write a number of bytes, 256MB or 1GB", text)
	}
	if n > math.MaxInt64/uint64(unit) || Size(n)*unit > most {
		return 0, fmt.Errorf("%s is too much: %s is the most", text, most)
	}
	s := Size(n) * unit
	if s < Least {
		return 0, fmt.Errorf("%s is too little to work with: %s is the least", text, Least)
	}
	return s, nil
}

// UnmarshalText implements encoding.TextUnmarshaler, by which command lines read a Size.
func (s *Size) UnmarshalText(b []byte) (err error) {
	*s, err = Parse(string(b))
	return err
}

// MarshalText implements encoding.TextMarshaler.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// String is the form that Parse reads, in the greatest unit of which it is a whole number.
func (s Size) String() string {
	for _, u := range []struct {
		name string
		unit Size
	}{{"GB", GB}, {"MB", MB}} {
		if s >= u.unit && s%u.unit == 0 {
			return strconv.FormatInt(int64(s/u.unit), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// Share is the part of the memory that is so much of every 256 MB, in bytes. Size 0 stands for Default.
func (s Size) Share(of Size) int64 {
	if s == 0 {
		s = Default
	}
	return int64(s)/int64(Default)*int64(of) + int64(s)%int64(Default)*int64(of)/int64(Default)
}

// Heap is the limit of the heap beside so many mapped bytes of files, in whole megabytes.
func (s Size) Heap(mapped int64) int64 {
	least := s.Share(heap)
	if s != 0 && s < Default {
		least = s.Share(small)
	}
	return max(s.Share(aim)-mapped, least) &^ (int64(MB) - 1)
}
