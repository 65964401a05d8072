package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	mit = "Permission is hereby granted, free of charge, to any person. The above copyright\nnotice and this permission notice shall be included.\n"
	bsd = "Redistribution and use in source and binary forms are permitted. Not to endorse\nor promote anything.\n"
)

// made is a module whose files have these contents, with packages in all of its folders.
func made(t *testing.T, path string, files map[string]string) *module {
	t.Helper()
	m := &module{path: path, version: "v1.0.0", dir: t.TempDir()}
	for name, content := range files {
		file := filepath.Join(m.dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		m.packages = append(m.packages, filepath.Dir(file))
	}
	return m
}

func TestNotice(t *testing.T) {
	one := made(t, "example.org/one", map[string]string{"LICENSE": mit, "NOTICE": "Made by One.\n", "main.go": "package one\n", "license.go": "package one\n"})
	two := made(t, "example.org/two", map[string]string{"COPYING.md": strings.ReplaceAll(mit, "\n", " \r\n"), "inner/deep/LICENSE.txt": bsd, "README": "no"})
	got, err := makeNotice([]*module{one, two})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"example.org/one v1.0.0  MIT\n", "example.org/two v1.0.0  MIT, BSD-3-Clause\n", "Made by One.",
		"example.org/one: LICENSE\nexample.org/two: COPYING.md\n---", // one text, once
		"example.org/two: inner/deep/LICENSE.txt\n---",
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("NOTICE has no %q:\n%s", want, got)
		}
	}
}

func TestRefused(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"has no licence":            {"NOTICE": "Made by One.\n"},
		"is no licence that is kno": {"LICENSE": mit, "inner/LICENSE": "All rights reserved.\n"},
	} {
		if _, err := makeNotice([]*module{made(t, "example.org/one", files)}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("want an error with %q, got %v", name, err)
		}
	}
}

func TestCompare(t *testing.T) {
	if err := compareNotice("a\nb\n", "a\nb\n"); err != nil {
		t.Error(err)
	}
	if err := compareNotice("a\nb\n", "a\nc\n"); err == nil || !strings.Contains(err.Error(), `NOTICE:2 is "b" and should be "c"`) {
		t.Error(err)
	}
	if err := compareNotice("a", "a\nc"); err == nil || !strings.Contains(err.Error(), `NOTICE:2 is "the end"`) {
		t.Error(err)
	}
}
