package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// bill is the list of everything that is linked into any of the programs, as SPDX 2.3 has it.
type bill struct {
	*release
	modules map[string]string // version by path
	tool    string            // version of Go, whose standard library is linked
}

func newBill(r *release) *bill { return &bill{release: r, modules: map[string]string{}} }

// addPrograms adds the modules that built programs name as their own.
func (b *bill) addPrograms(programs []file) error {
	for _, f := range programs {
		info, err := buildinfo.ReadFile(f.from)
		if err != nil {
			return err
		}
		b.tool = strings.TrimPrefix(info.GoVersion, "go")
		for _, m := range info.Deps {
			m = cmp.Or(m.Replace, m)
			b.modules[m.Path] = m.Version
		}
	}
	return nil
}

// noticed are the lines of NOTICE that name a module and its licences.
var noticed = regexp.MustCompile(`(?m)^(\S+) (v\S+)  (.+)$`)

// readLicences returns those of the linked modules, by NOTICE. A module that is not there is an error.
func (b *bill) readLicences() (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(b.source, "NOTICE"))
	if err != nil {
		return nil, err
	}
	said := map[string]string{}
	for _, m := range noticed.FindAllStringSubmatch(string(text), -1) {
		said[m[1]+"@"+m[2]] = strings.ReplaceAll(m[3], ", ", " AND ")
	}
	out := map[string]string{}
	for path, version := range b.modules {
		if out[path] = said[path+"@"+version]; out[path] == "" {
			return nil, fmt.Errorf("NOTICE does not have %s %s, which is linked: make notice", path, version)
		}
	}
	return out, nil
}

type spdxPackage struct {
	ID          string         `json:"SPDXID"`
	Name        string         `json:"name"`
	Version     string         `json:"versionInfo"`
	Location    string         `json:"downloadLocation"`
	Analyzed    bool           `json:"filesAnalyzed"`
	License     string         `json:"licenseDeclared"`
	Concluded   string         `json:"licenseConcluded"`
	Copyright   string         `json:"copyrightText"`
	ExternalIDs []spdxExternal `json:"externalRefs,omitempty"`
}

type spdxExternal struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type spdxRelation struct {
	Of   string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

// writeBill writes the list. The same programs give the same bytes.
func (b *bill) writeBill(to string) error {
	licences, err := b.readLicences()
	if err != nil {
		return err
	}
	const none = "NOASSERTION"
	weir := spdxPackage{ID: "SPDXRef-weir", Name: "weir", Version: b.version, Location: none, License: "Apache-2.0", Concluded: "Apache-2.0", Copyright: "Copyright 2026 The weir authors"}
	packages, relations := []spdxPackage{weir}, []spdxRelation{{"SPDXRef-DOCUMENT", "DESCRIBES", weir.ID}}
	link := func(n int, path, version, licence string) {
		p := spdxPackage{ID: fmt.Sprintf("SPDXRef-%d", n), Name: path, Version: version, Location: none, License: licence, Concluded: none, Copyright: none,
			ExternalIDs: []spdxExternal{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + strings.ToLower(path) + "@" + strings.ReplaceAll(version, "+", "%2B")}}}
		packages, relations = append(packages, p), append(relations, spdxRelation{weir.ID, "STATIC_LINK", p.ID})
	}
	link(0, "std", b.tool, "BSD-3-Clause")
	for i, path := range slices.Sorted(maps.Keys(b.modules)) {
		link(i+1, path, b.modules[path], licences[path])
	}
	text, err := json.MarshalIndent(map[string]any{
		"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": "weir-" + b.version,
		"documentNamespace": fmt.Sprintf("urn:weir:%s:%x", b.version, sha256.Sum256([]byte(b.commit+strings.Join(b.platforms, ",")))),
		"creationInfo":      map[string]any{"created": b.time.Format("2006-01-02T15:04:05Z"), "creators": []string{"Organization: The weir authors"}},
		"packages":          packages, "relationships": relations,
	}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(to, append(text, '\n'), 0o644)
}
