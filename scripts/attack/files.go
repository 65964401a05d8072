package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// attackFiles replays recordings that are truncated or have a flipped bit. None may be accepted as
// complete: if the exit code is 0, every record must have been used.
func (a *attack) attackFiles() (string, error) {
	var plain bytes.Buffer
	for i := range 60 {
		fmt.Fprintf(&plain, `{"eventName":"INSERT","dynamodb":{"SequenceNumber":"%d","Keys":{"PK":{"S":"ALBUM#%[1]d"},"SK":{"S":"METADATA"}},"NewImage":{"PK":{"S":"ALBUM#%[1]d"},"SK":{"S":"METADATA"},"EntityType":{"S":"Album"},"id":{"S":"%[1]d"},"title":{"S":"%x"},"createdAt":{"S":"2025-01-01T00:00:00Z"}}}}`+"\n", 100+i, a.rng.Uint64())
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(plain.Bytes()); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	path, refused := filepath.Join(a.dir, "stream.gz"), 0
	n := a.shortOrFull(150, 8)
	for i := range n {
		b := bytes.Clone(packed.Bytes())
		if i%2 == 0 {
			b = b[:1+a.rng.IntN(len(b)-1)]
		} else {
			b[a.rng.IntN(len(b))] ^= 1 << a.rng.IntN(8)
		}
		if err := os.WriteFile(path, b, 0o600); err != nil {
			return "", err
		}
		out, err := exec.Command("bin/weir", "replay", "gallery", path, "--no-search", "--data", filepath.Join(a.dir, fmt.Sprint("data", i))).CombinedOutput()
		code := 0
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			code = exit.ExitCode()
		} else if err != nil {
			return "", err
		}
		if code == 1 || code == 2 {
			refused++
		} else if code != 0 || !strings.Contains(string(out), "60 applied, 0 skipped, 0 kept, 0 gaps") {
			return "", fmt.Errorf("a damaged recording: exit %d: %s", code, out)
		}
	}
	return fmt.Sprintf("%d damaged recordings, %d told, the others whole", n, refused), nil
}
