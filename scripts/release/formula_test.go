package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFormula: the formula has the address and the checksum of the archive of each platform that was built.
func TestFormula(t *testing.T) {
	r := &release{version: "1.2.3", module: "example.org/weir", out: t.TempDir()}
	for _, platform := range []string{"darwin_arm64", "linux_amd64"} {
		if err := os.WriteFile(filepath.Join(r.out, "weir_1.2.3_"+platform+".tar.gz"), []byte(platform), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.writeFormula("https://example.org/weir/1.2.3"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(r.out, "weir.rb"))
	if err != nil {
		t.Fatal(err)
	}
	const want = `  version "1.2.3"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "https://example.org/weir/1.2.3/weir_1.2.3_darwin_arm64.tar.gz"
      sha256 "6399fb33634d3c7090258603773f07997e0736dceae7096977e8365e93a7a350"
    end
  end

  on_linux do
    on_intel do
`
	if !strings.Contains(string(text), want) {
		t.Errorf("%s", text)
	}
}
