package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// kinds are the licences that may be linked, each with phrases that only its text contains, the
// most specific licence first. None of them requires more than passing on its text.
var kinds = []struct {
	name  string
	words []string
}{
	{"Apache-2.0", []string{"Apache License", "Version 2.0, January 2004"}},
	{"BSD-3-Clause", []string{"Redistribution and use in source and binary forms", "endorse or promote"}},
	{"BSD-2-Clause", []string{"Redistribution and use in source and binary forms"}},
	{"MIT", []string{"Permission is hereby granted, free of charge", "The above copyright notice and this permission notice"}},
	{"MIT-0", []string{"Permission is hereby granted, free of charge"}},
	{"ISC", []string{"Permission to use, copy, modify, and/or distribute this software for any purpose with or without fee"}},
}

// data are the files that the programs have in them and that are in the public domain.
var data = []string{"IANA time zone database 2025c (internal/model/zoneinfo.zip)  public domain"}

// kindOf returns the licence of a text, "" if it is not one of kinds.
func kindOf(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	for _, k := range kinds {
		if !slices.ContainsFunc(k.words, func(w string) bool { return !strings.Contains(text, w) }) {
			return k.name
		}
	}
	return ""
}

var (
	isLicence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense|copyright)([.-].*)?$`)
	isNotice  = regexp.MustCompile(`(?i)^(notice|patents|licen[cs]e-summary)([.-].*)?$`)
)

// text is a file of a module that must accompany a binary.
type text struct {
	name    string // path within the module
	kind    string // the licence that it is; "" for a notice
	content string
}

// readTexts returns the licences and notices of a module, and of its parts that have another
// licence.
func (m *module) readTexts() (out []text, err error) {
	for _, dir := range m.licenceFolders() {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		inLicences := filepath.Base(dir) == "licenses"
		for _, e := range entries {
			licence := isLicence.MatchString(e.Name()) && !isNotice.MatchString(e.Name()) || inLicences
			if !e.Type().IsRegular() || strings.HasSuffix(e.Name(), ".go") || !licence && !isNotice.MatchString(e.Name()) {
				continue
			}
			b, err := os.ReadFile(filepath.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			name, _ := filepath.Rel(m.dir, filepath.Join(dir, e.Name()))
			t := text{name: filepath.ToSlash(name), content: tidyText(b)}
			if licence {
				if t.kind = kindOf(t.content); t.kind == "" {
					return nil, fmt.Errorf("%s: %s is no licence that is known here: read it, and add it to kinds if it may be linked", m.path, t.name)
				}
			}
			out = append(out, t)
		}
	}
	if !slices.ContainsFunc(out, func(t text) bool { return t.kind != "" }) {
		return nil, fmt.Errorf("%s %s has no licence in %s", m.path, m.version, m.dir)
	}
	return out, nil
}

// tidyText returns a text with plain line ends, without byte order marks and trailing white space.
func tidyText(b []byte) string {
	lines := strings.Split(string(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimRight(strings.TrimPrefix(l, "\ufeff"), " \t\f")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n") + "\n"
}

const head = `weir
Copyright 2026 The weir authors

weir is under the Apache License, Version 2.0, which the file LICENSE has.

It links the software below; the versions are those of go.mod. This file is made by
scripts/licences ("make notice") from what the two programs link, and goes with every
copy of them. First the list, then each text once, under the names of those it is of.

`

// makeNotice returns the content of NOTICE.
func makeNotice(mods []*module) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString(head)
	of := map[string][]string{} // text → where it is from
	var order []string
	for _, m := range mods {
		texts, err := m.readTexts()
		if err != nil {
			return nil, err
		}
		var names []string
		for _, t := range texts {
			if t.kind != "" && !slices.Contains(names, t.kind) {
				names = append(names, t.kind)
			}
			if _, ok := of[t.content]; !ok {
				order = append(order, t.content)
			}
			of[t.content] = append(of[t.content], m.path+": "+t.name)
		}
		fmt.Fprintf(&out, "%s  %s\n", strings.TrimSpace(m.path+" "+m.version), strings.Join(names, ", "))
	}
	for _, line := range data {
		fmt.Fprintln(&out, line)
	}
	for _, content := range order {
		fmt.Fprintf(&out, "\n%s\n", strings.Repeat("=", 80))
		for _, from := range of[content] {
			fmt.Fprintln(&out, from)
		}
		fmt.Fprintf(&out, "%s\n\n%s", strings.Repeat("-", 80), content)
	}
	return out.Bytes(), nil
}
