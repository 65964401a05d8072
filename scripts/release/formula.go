package main

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// writeFormula writes weir.rb, which Homebrew installs weir by, from the archives for its platforms. base is the address of the
// directory that has them.
func (r *release) writeFormula(base string) error {
	var b strings.Builder
	fmt.Fprintf(&b, `class Weir < Formula
  desc "Derived data for DynamoDB tables, kept exactly right"
  homepage "https://%s"
  version "%s"
  license "Apache-2.0"
`, r.module, r.version)
	for _, system := range []struct{ ruby, name string }{{"macos", "darwin"}, {"linux", "linux"}} {
		var of strings.Builder
		for _, machine := range []struct{ ruby, name string }{{"arm", "arm64"}, {"intel", "amd64"}} {
			archive := fmt.Sprintf("weir_%s_%s_%s.tar.gz", r.version, system.name, machine.name)
			content, err := os.ReadFile(filepath.Join(r.out, archive))
			if os.IsNotExist(err) { // with -platforms
				continue
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(&of, "    on_%s do\n      url \"%s/%s\"\n      sha256 \"%x\"\n    end\n", machine.ruby, base, archive, sha256.Sum256(content))
		}
		if of.Len() > 0 {
			fmt.Fprintf(&b, "\n  on_%s do\n%s  end\n", system.ruby, of.String())
		}
	}
	b.WriteString(`
  def install
    bin.install "weir"
  end

  test do
    system bin/"weir", "lint", "gallery"
  end
end
`)
	return os.WriteFile(r.releaseFile("weir.rb"), []byte(b.String()), 0o644)
}
