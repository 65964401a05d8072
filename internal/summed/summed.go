// Package summed encodes small files with a checksum, so that damage is detected. It also
// computes checksums of the beginnings of other files.
//
// A list file begins with the CRC-32C of its JSON as eight hexadecimal digits and a newline;
// the JSON follows:
//
//	8f3a01c2
//	{"bytes":4711,"sum":99}
//
// This package does no writing to disk. A caller that replaces such a file atomically (write a
// new file, sync it, rename it) later reads either its bytes or an error.
package summed

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum returns the CRC-32C of b.
func Sum(b []byte) uint32 { return crc32.Checksum(b, castagnoli) }

// Prefix describes the first bytes of a file: how many they are, and their CRC-32C.
type Prefix struct {
	Bytes int64  `json:"bytes"`
	Sum   uint32 `json:"sum"`
}

// With returns the prefix extended by b.
func (p Prefix) With(b []byte) Prefix {
	return Prefix{p.Bytes + int64(len(b)), crc32.Update(p.Sum, castagnoli, b)}
}

// Read returns the Prefix of the first most bytes of a file. A shorter file gives a shorter
// prefix and no error.
func Read(r io.Reader, most int64) (Prefix, error) {
	sum := crc32.New(castagnoli)
	n, err := io.Copy(sum, io.LimitReader(r, most))
	return Prefix{n, sum.Sum32()}, err
}

// head is the length of the first line.
const head = 8 + len("\n")

// Marshal returns the content of a list file that holds v.
func Marshal(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	b = append(b, '\n')
	return append(firstLine(b), b...), nil
}

func firstLine(rest []byte) []byte { return fmt.Appendf(nil, "%08x\n", Sum(rest)) }

// Unmarshal decodes the content of a list file into v. An error means that the file is
// damaged or holds something else.
func Unmarshal(b []byte, v any) error {
	if len(b) < head || string(b[:head]) != string(firstLine(b[head:])) {
		return errors.New("its checksum is wrong")
	}
	return json.Unmarshal(b[head:], v)
}
