package model

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"

	"weir/internal/failtest"
)

func TestBuiltinModelsLoad(t *testing.T) {
	for _, name := range Builtin() {
		m, err := Load(name)
		if err != nil {
			t.Errorf("%s:\n%v", name, err)
		} else if lines := bytes.Count(m.text, []byte("\n")); m.Name != name || lines >= 200 { // a page that people read stays a page
			t.Errorf("%s.yaml is the model %s with %d lines", name, m.Name, lines)
		}
	}
}

func TestLoadByNameOrPath(t *testing.T) {
	t.Chdir(t.TempDir())
	own := strings.Replace(ownModel, "NAME", "own", 1)
	for _, f := range []string{"own.yaml", "own"} {
		failtest.On(t, os.WriteFile(f, []byte(own), 0o600))
	}
	failtest.On(t, os.Mkdir("wardrobe", 0o700))
	for given, want := range map[string]string{"own.yaml": "own", "own": "own", "./own.yaml": "own", "wardrobe": "wardrobe", "gallery": "gallery"} {
		m, err := Load(given)
		if err != nil {
			t.Errorf("%s: %v", given, err)
		} else if m.Name != want {
			t.Errorf("%s is the model %s, not %s", given, m.Name, want)
		}
	}
	failtest.On(t, os.WriteFile("gallery", []byte(own), 0o600))
	if m, err := Load("gallery"); err != nil || m.Name != "own" || m.File != "gallery" {
		t.Errorf("a file here comes before the built-in model: %v, %v", m, err)
	}
}

const ownModel = `
model: NAME
tables: {things: {key: [PK]}}
entities: {Thing: {key: {PK: "THING#{id}"}}}
`

func TestLoadOfNothing(t *testing.T) {
	for given, want := range map[string]string{
		"galery":          `did you mean "gallery"?`,
		"nowhere/my.yaml": "nowhere/my.yaml",
		"my.yml":          "my.yml",
		"":                "no model",
	} {
		_, err := Load(given)
		if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", given, err)
		}
		if problems := (*Problems)(nil); errors.As(err, &problems) {
			t.Errorf("%q: nothing was read, and yet %v", given, problems)
		}
	}
}

// TestGive: a model that a program has in it is found by its name, each time as a model of its own.
func TestGive(t *testing.T) {
	m, err := Parse("given.yaml", []byte("model: given\ntables: {given: {key: [PK]}}\nentities: {Thing: {key: {PK: \"THING#{id}\"}}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Load("given"); !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	Give(m)
	defer delete(given, "given")
	if is, err := Load("given"); err != nil || is == m || is.Name != "given" || is.Arg != "given" {
		t.Error(is, err)
	}
	if _, err := Load("givn"); err == nil || !strings.Contains(err.Error(), "given") {
		t.Error(err)
	}
}
