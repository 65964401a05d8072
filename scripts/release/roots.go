//go:build ignore

// Program roots prints the certificates of the authorities that a container image trusts,
// which has no others: those of Mozilla that are trusted without conditions, since a file of
// certificates cannot express any. It is built by the modules of .ci/release.
package main

import (
	"encoding/pem"
	"log"
	"os"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

func main() {
	for c := range bundle.Roots() {
		if c.Constraint != nil {
			continue
		}
		if err := pem.Encode(os.Stdout, &pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate}); err != nil {
			log.Fatal(err)
		}
	}
}
