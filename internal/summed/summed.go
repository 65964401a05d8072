// Package summed writes small files whose damage is noticed, and sums up what other
// files begin with.
//
// A list file is the CRC-32C of what follows, as eight hexadecimal digits, a newline,
// and JSON:
//
//	8f3a01c2
//	{"bytes":4711,"sum":99}
//
// A caller that replaces such a file as a whole (written beside, synced, renamed) reads
// back what it wrote, or an error.
package summed

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum is the CRC-32C of some bytes.
func Sum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// Prefix is the first bytes of a file: how many, and their CRC-32C.
type Prefix struct {
	Bytes int64  `json:"bytes"`
	Sum   uint32 `json:"sum"`
}

// With is the prefix with more bytes behind it.
func (p Prefix) With(b []byte) Prefix {
	return Prefix{p.Bytes + int64(len(b)), crc32.Update(p.Sum, castagnoli, b)}
}

// Read sums up the first bytes of a file, at most so many; a shorter file gives a
// shorter prefix.
func Read(r io.Reader, most int64) (Prefix, error) {
	sum := crc32.New(castagnoli)
	n, err := io.Copy(sum, io.LimitReader(r, most))
	return Prefix{n, sum.Sum32()}, err
}

// head is how long the first line is.
const head = 8 + len("\n")

// Marshal is the content of a list file.
func Marshal(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	b = append(b, '\n')
	return append(firstLine(b), b...), nil
}

func firstLine(rest []byte) []byte { return fmt.Appendf(nil, "%08x\n", Sum(rest)) }

// Unmarshal reads the content of a list file. An error means that the file is damaged,
// or that it holds something else.
func Unmarshal(b []byte, v any) error {
	if len(b) < head || string(b[:head]) != string(firstLine(b[head:])) {
		return errors.New("its checksum is wrong")
	}
	return json.Unmarshal(b[head:], v)
}
