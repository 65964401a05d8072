package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"testing"
	"time"
)

// TestBill: the list of modules keeps the rules of SPDX 2.3 that a validator holds it to, and names each module once.
// With WEIR_TEST_BILL=FILE it is written there, for a validator such as pyspdxtools.
func TestBill(t *testing.T) {
	at, err := time.Parse(time.RFC3339, "2026-01-02T03:04:05Z")
	if err != nil {
		t.Fatal(err)
	}
	b := newBill(&release{source: "../..", version: "0.1.0", platforms: []string{"linux/amd64"}, commit: "c0ffee", time: at})
	text, err := os.ReadFile("../../NOTICE")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range noticed.FindAllStringSubmatch(string(text), -1) {
		b.modules[m[1]] = m[2]
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		b.tool = regexp.MustCompile(`\d.*`).FindString(info.GoVersion)
	}
	to := os.Getenv("WEIR_TEST_BILL")
	if to == "" {
		to = filepath.Join(t.TempDir(), "weir.spdx.json")
	}
	if err := b.writeBill(to); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Namespace string `json:"documentNamespace"`
		Created   struct {
			At string `json:"created"`
		} `json:"creationInfo"`
		Packages  []spdxPackage  `json:"packages"`
		Relations []spdxRelation `json:"relationships"`
	}
	if text, err = os.ReadFile(to); err == nil {
		err = json.Unmarshal(text, &doc)
	}
	if err != nil {
		t.Fatal(err)
	}
	if !regexp.MustCompile(`^[a-z]+:[^#]+$`).MatchString(doc.Namespace) || doc.Created.At != "2026-01-02T03:04:05Z" {
		t.Errorf("the document is %q, made %s", doc.Namespace, doc.Created.At)
	}
	ids, id := map[string]bool{"SPDXRef-DOCUMENT": true}, regexp.MustCompile(`^SPDXRef-[A-Za-z0-9.-]+$`)
	const licence = `(Apache-2\.0|BSD-2-Clause|BSD-3-Clause|MIT|MIT-0|ISC)`
	expression := regexp.MustCompile(`^` + licence + `( AND ` + licence + `)*$`)
	purl := regexp.MustCompile(`^pkg:golang/[a-z0-9./_~-]+@[a-zA-Z0-9.%-]+$`) // lower case, says its specification
	for _, p := range doc.Packages {
		if ids[p.ID] || !id.MatchString(p.ID) {
			t.Errorf("%s has the id %q", p.Name, p.ID)
		}
		ids[p.ID] = true
		if !expression.MatchString(p.License) || p.Location == "" || p.Analyzed || p.Version == "" {
			t.Errorf("%+v", p)
		}
		for _, x := range p.ExternalIDs {
			if !purl.MatchString(x.Locator) {
				t.Errorf("%s has the package URL %s", p.Name, x.Locator)
			}
		}
	}
	if len(doc.Packages) != len(b.modules)+2 || len(doc.Relations) != len(doc.Packages) {
		t.Errorf("%d packages and %d relations, for %d modules, weir itself and the standard library", len(doc.Packages), len(doc.Relations), len(b.modules))
	}
	for _, r := range doc.Relations {
		if !ids[r.Of] || !ids[r.To] {
			t.Errorf("%+v is about what is not there", r)
		}
	}
}
