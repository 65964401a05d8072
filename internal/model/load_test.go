package model

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestBuiltinModelsLoad(t *testing.T) {
	if names := Builtin(); !slices.Contains(names, "gallery") || !slices.Contains(names, "wardrobe") {
		t.Fatalf("built in: %v", names)
	}
	for _, name := range Builtin() {
		m, err := Load(name)
		if err != nil {
			t.Errorf("%s:\n%v", name, err)
		} else if m.Name != name {
			t.Errorf("%s.yaml is the model %s", name, m.Name)
		}
	}
}

// A page that people read stays a page.
func TestBuiltinModelsAreShort(t *testing.T) {
	files, _ := filepath.Glob("../../models/*.yaml")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(b), "\n"); n >= 200 {
			t.Errorf("%s has %d lines", f, n)
		}
	}
}

// The queries of each system, with their parameters, as its users call them.
func TestBuiltinQueries(t *testing.T) {
	for model, want := range map[string]string{
		"gallery": `album(albumId) albums() albums-by-creator(createdBy) public-albums(isPublic) media(mediaId) album-media(albumId)
			media-albums(mediaId) media-by-creator(createdBy) public-media() album-media-by-date() admin-by-username(username)
			session(sessionId) expired-sessions(before) user(userId) user-by-email(email) user-by-google(googleId)
			user-by-username(username) user-session(sessionId) expired-user-sessions(before) verification-token(token)
			user-interactions(userId[,type]) media-interactions(mediaId[,type]) search-albums(q) search-media(q)`,
		"wardrobe": `item(itemId) user-items(userId[,category]) user-items-by-season(userId,season) idempotency(userId,key)
			user-activities(userId[,type]) search-items(q[,userId])`,
	} {
		m, err := Load(model)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, q := range m.Queries {
			got = append(got, call(q))
		}
		list := strings.Fields(want)
		slices.Sort(list)
		slices.Sort(got)
		if !slices.Equal(got, list) {
			t.Errorf("%s:\n got %v\nwant %v", model, got, list)
		}
	}
}

// call writes a query as a call; what every search has besides is left out.
func call(q *Query) string {
	text := ""
	for i, p := range q.Params {
		if q.Search != nil && (p.Name == sortParam || p.Name == "createdBy") {
			continue
		}
		name := p.Name
		if i > 0 {
			name = "," + name
		}
		if p.Optional {
			name = "[" + name + "]"
		}
		text += name
	}
	return q.Name + "(" + text + ")"
}

func TestLoadByNameOrPath(t *testing.T) {
	t.Chdir(t.TempDir())
	own := strings.Replace(ownModel, "NAME", "own", 1)
	for _, f := range []string{"own.yaml", "own"} {
		if err := os.WriteFile(f, []byte(own), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir("wardrobe", 0o700); err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{"own.yaml": "own", "own": "own", "./own.yaml": "own", "wardrobe": "wardrobe", "gallery": "gallery"} {
		m, err := Load(given)
		if err != nil {
			t.Errorf("%s: %v", given, err)
		} else if m.Name != want {
			t.Errorf("%s is the model %s, not %s", given, m.Name, want)
		}
	}
	if err := os.WriteFile("gallery", []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
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
