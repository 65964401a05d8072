package embedded

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"weir/internal/store"
)

// idFile has the id of a directory.
const idFile = "ID"

// Own takes a directory of indexes for this process, until release is closed or the process ends, and returns the id of the directory,
// which is made once. A directory whose id was lost is another one, and its indexes are filled again. The error wraps
// store.ErrOwned if another process has the directory.
func Own(dir string) (id string, release io.Closer, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", nil, fmt.Errorf("the directory of the search index: %w", err)
	}
	release, err = pebble.LockDirectory(dir, vfs.Default)
	if path := (*os.PathError)(nil); errors.As(err, &path) {
		return "", nil, fmt.Errorf("the directory of the search index: %w", err)
	}
	if err != nil {
		return "", nil, fmt.Errorf("%w: another process has the search index in %s; stop it, or use another directory", store.ErrOwned, dir)
	}
	was, err := os.ReadFile(filepath.Join(dir, idFile))
	if id = strings.TrimSpace(string(was)); err == nil && id != "" {
		return id, release, nil
	}
	id = rand.Text()
	if err := replaceFile(dir, idFile, []byte(id+"\n")); err != nil {
		return "", nil, errors.Join(fmt.Errorf("the directory of the search index: %w", err), release.Close())
	}
	return id, release, nil
}
