package system_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"weir/internal/model"
	"weir/internal/query"
	searchembedded "weir/internal/search/embedded"
	"weir/internal/store/embedded"
	"weir/internal/system"
)

// everyPlace makes TestDamagedData damage every 64th byte instead of a few of each file.
const everyPlace = "WEIR_TEST_EVERY_PLACE"

// TestDamagedData: whatever file of a data directory is missing, cut or not as it was
// written: it is refused with what to do, or what it answers is right, or an error. With
// the file as it was, everything is there again.
func TestDamagedData(t *testing.T) {
	log := slog.Default()
	slog.SetDefault(slog.New(slog.DiscardHandler)) // it is told of damage
	defer slog.SetDefault(log)
	m, err := model.Load("gallery")
	if err != nil {
		t.Fatal(err)
	}
	whole := dataOf(t, m)
	want, err := answers(t, m, whole)
	if err != nil || strings.Count(want, "\n") < 40 {
		t.Fatalf("%v\n%s", err, want)
	}
	refused := 0
	for _, name := range names(whole) {
		b := whole[name]
		for what, damaged := range damagesOf(name, b) {
			data := map[string][]byte{}
			for other, content := range whole {
				data[other] = content
			}
			if data[name] = damaged; damaged == nil {
				delete(data, name)
			}
			got, err := answers(t, m, data)
			switch damage := (*searchembedded.DamageError)(nil); {
			case err == nil && got != want:
				t.Errorf("%s %s: it answers\n%s\nnot\n%s", name, what, got, want)
			case errors.Is(err, embedded.ErrDamaged), errors.As(err, &damage):
				refused++
			case err != nil && !strings.Contains(err.Error(), "checksum mismatch") && !strings.Contains(err.Error(), "invalid table"):
				t.Errorf("%s %s: %v", name, what, err)
			}
		}
	}
	t.Logf("%d files, %d ways of damage refused", len(whole), refused)
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

func names(data map[string][]byte) (out []string) {
	for name := range data {
		if filepath.Base(name) != "LOCK" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// damagesOf are contents that a file might have instead, nil for none.
func damagesOf(name string, b []byte) map[string][]byte {
	out := map[string][]byte{"is missing": nil}
	step := max(64, len(b)/2&^63)
	if testing.Short() {
		step = max(64, len(b))
	}
	if strings.HasSuffix(name, ".sst") { // opening and reading around damage takes a while
		step = max(64, len(b))
	}
	if os.Getenv(everyPlace) != "" {
		step = 64
	}
	for at := 0; at < len(b); at += step {
		flipped := slices.Clone(b)
		flipped[at] ^= 1 << (at / 64 % 8)
		out[fmt.Sprintf("is flipped at %d of %d", at, len(b))] = flipped
		out[fmt.Sprintf("is cut to %d of %d", at, len(b))] = b[:at:at]
	}
	return out
}

// dataOf is a data directory, closed, by the paths of its files.
func dataOf(t *testing.T, m *model.Model) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	for round := range 2 {
		s, err := system.Open(context.Background(), dir, []*model.Model{m}, system.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Reach(context.Background(), nil); err != nil {
			t.Fatal(err)
		}
		for n := range 10 {
			putAlbum(t, s, fmt.Sprint("a", round, n), fmt.Sprint("harbor ", round, " ", n))
		}
		settle(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	data := map[string][]byte{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err == nil {
			data[rel], err = os.ReadFile(p)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// answers are what a data directory answers to a list and to a search.
func answers(t *testing.T, m *model.Model, data map[string][]byte) (string, error) {
	t.Helper()
	dir := t.TempDir()
	for name, b := range data {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := system.Open(context.Background(), dir, []*model.Model{m}, system.Options{})
	if err != nil {
		return "", err
	}
	defer s.Close()
	if err := s.Reach(context.Background(), nil); err != nil {
		return "", err
	}
	var out strings.Builder
	for _, q := range []struct{ name, param, text string }{{"public-albums", "isPublic", "true"}, {"search-albums", "q", "harbor"}} {
		page, err := s.Models[0].Query.Run(context.Background(), q.name, map[string]string{q.param: q.text}, query.Page{})
		if err != nil {
			return "", err
		}
		var lines []string
		for _, row := range page.Items {
			lines = append(lines, fmt.Sprintf("%s %s %s\n", q.name, row.Get("id").Text(), row.Get("title").Text()))
		}
		slices.Sort(lines)
		out.WriteString(strings.Join(lines, ""))
	}
	return out.String(), nil
}
