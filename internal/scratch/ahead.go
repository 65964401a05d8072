package scratch

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"weir/internal/owntable"
	"weir/internal/store"
	"weir/internal/store/embedded"
)

// Ahead is the cost of one pass over a store, by the store's knowledge of its tables. DynamoDB counts rows and bytes about every
// six hours; an embedded store counts none.
type Ahead struct {
	Rows  int64
	Bytes int64  // of the tables that are read
	Dir   string // of the temporary store
	Disk  int64  // bytes that it takes, about
	Free  int64  // bytes that its directory has
}

// diskPerByte is how much the temporary store takes for a byte of the tables, at most, with the sorted files beside it: a
// million rows of the gallery, of 423 MB, took 891 MB.
const diskPerByte = 2.5

// Ahead returns the cost of one pass. It reads no row.
func (v *Verify) Ahead(ctx context.Context) (a Ahead, err error) {
	tables := []string{owntable.TableName}
	for _, t := range v.Model.Tables {
		tables = append(tables, t.Name)
	}
	for _, name := range tables {
		is, err := v.Store.Identity(ctx, name)
		if err != nil {
			return a, fmt.Errorf("how large is table %s: %w", name, err)
		}
		a.Rows += is.Rows
		a.Bytes += is.Bytes
	}
	a.Dir, a.Disk = cmp.Or(v.Dir, os.TempDir()), int64(float64(a.Bytes)*diskPerByte)
	a.Free, err = embedded.Free(a.Dir)
	return a, err
}

// ReadUnits returns the read units of a pass, by the documented rules: one for each 4 KB of a strong scan.
func (a Ahead) ReadUnits() int64 { return (a.Bytes + store.ReadUnitBytes - 1) / store.ReadUnitBytes }

// String is the cost of the pass but for its price.
func (a Ahead) String() string {
	return fmt.Sprintf("%d rows, %d read units, and %.2f GB in %s", a.Rows, a.ReadUnits(), gigabytes(a.Disk), a.Dir)
}

func gigabytes(n int64) float64 { return float64(n) / 1e9 }

// Check refuses a pass for which there is too little room.
func (a Ahead) Check() error {
	if a.Disk <= a.Free {
		return nil
	}
	return fmt.Errorf("the temporary store needs about %.2f GB in %s, which has %.2f: make room, or say with --data DIR or TMPDIR where there is more", gigabytes(a.Disk), a.Dir, gigabytes(a.Free))
}
