package owntable_test

import (
	"errors"
	"strings"
	"testing"

	"weir/internal/owntable"
	"weir/internal/value"
)

func TestSecretRow(t *testing.T) {
	o, key := ownTable(t), []byte("0123456789abcdef")
	if !o.writes(owntable.SetSecret(key)) || o.writes(owntable.SetSecret([]byte("another one, later"))) {
		t.Error("a key is made once")
	}
	if is, err := owntable.DecodeSecret(o.row(owntable.Secret())); err != nil || string(is) != string(key) {
		t.Error(is, err)
	}
	for _, v := range []value.Value{{}, value.OfString(string(key)), value.OfBinary("short and open")} {
		_, err := owntable.DecodeSecret(o.row(owntable.Secret()).With(value.Attr{Name: "v", Value: v}))
		if !errors.Is(err, owntable.ErrRow) || !strings.Contains(err.Error(), `"secret" "cursor", attribute v`) || strings.Contains(err.Error(), "short and open") || strings.Contains(err.Error(), string(key)) {
			t.Error(err)
		}
	}
}

func TestMadeRow(t *testing.T) {
	o, at := ownTable(t), owntable.MadeTable("Pictures")
	for _, want := range []string{"", "id-1", "id-2"} {
		if !o.writes(owntable.SetMade(at, want)) {
			t.Error(want)
		}
		if is, err := owntable.DecodeMade(o.row(at)); err != nil || is != want || o.row(at).Get("by").Text() != "replay" {
			t.Error(is, err)
		}
	}
	_, err := owntable.DecodeMade(o.row(at).With(value.Attr{Name: "id", Value: value.OfInt(1)}))
	o.unread(err, "id")
}
