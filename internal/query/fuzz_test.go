package query

import (
	"encoding/base64"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"weir/internal/model"
	"weir/internal/value"
)

var timeText = regexp.MustCompile(`^\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\d(\.\d+)?Z)?$`)

// FuzzParameter: what a parameter takes is what its type says, by the standard
// library's reading; times are such that they compare as text; and what it does not
// take is said in one short line.
func FuzzParameter(f *testing.F) {
	for _, s := range []string{
		"", "a", "a,b", ",", ",,a", " ", " a , ,b", "1", "-1.50", "1e5", "1e500", "true", "TRUE", "2025-11-13", "2025-11-13T10:30:00Z", "2025-11-13T10:30:00.500+01:00", "2025-11-13T1:30:00Z",
		"2025-11-13T10:30:00,5Z", "2025-02-30T00:00:00Z", "AAE=", "AAE", "\xff", "a\x00b", strings.Repeat("1,", 1001), "2025-11-13T24:00:00Z", "0001-01-01T00:00:00+23:59",
	} {
		f.Add(s, false)
		f.Add(s, true)
	}
	types := []model.Type{model.TypeAny, model.TypeString, model.TypeNumber, model.TypeBoolean, model.TypeFlag, model.TypeTime, model.TypeBinary}
	f.Fuzz(func(t *testing.T, text string, list bool) {
		for _, typ := range types {
			d := Parameter{Name: "p", Type: typ, List: list}
			got, err := d.parseAll(text)
			if err != nil {
				if m := err.Error(); m == "" || len(m) > 400 || strings.ContainsAny(m, "\n\r\x00") || !utf8.ValidString(m) {
					t.Fatalf("%s %q: the message %q", typ, text, m)
				}
			}
			if !list {
				checkParameter(t, typ, text, got, err)
				continue
			}
			var parts []string
			for part := range strings.SplitSeq(text, comma) {
				if part = strings.TrimSpace(part); part != "" {
					parts = append(parts, part)
				}
			}
			if err == nil && (got.Kind() != value.List || got.Len() != len(parts) || len(parts) > maxListed) {
				t.Fatalf("%s %q: a list of %d", typ, text, got.Len())
			}
			for i, part := range parts {
				if err == nil {
					checkParameter(t, typ, part, got.Elements()[i].Value, nil)
				}
			}
		}
	})
}

func checkParameter(t *testing.T, typ model.Type, text string, got value.Value, err error) {
	t.Helper()
	good, want := text != "" && utf8.ValidString(text), value.OfString(text)
	switch typ {
	case model.TypeNumber:
		n, nerr := value.ParseNumber(text)
		good, want = nerr == nil, n
	case model.TypeBoolean, model.TypeFlag:
		good, want = text == "true" || text == "false", value.OfBool(text == "true")
	case model.TypeBinary:
		raw, berr := base64.StdEncoding.DecodeString(text)
		good, want = good && berr == nil, value.OfBinary(string(raw))
	case model.TypeTime:
		if err != nil {
			return
		}
		if !timeText.MatchString(got.Text()) {
			t.Fatalf("%q is taken as %q, which does not compare as text", text, got.Text())
		}
		at, _ := time.Parse(time.RFC3339, text)
		if is, _ := time.Parse(time.RFC3339, got.Text()); !is.Equal(at) {
			t.Fatalf("%q is taken as %q", text, got.Text())
		}
		return
	}
	if (err == nil) != good || good && !value.Equal(got, want) {
		t.Fatalf("%s %q: %s %q, %v", typ, text, got.Kind(), got.Text(), err)
	}
}
