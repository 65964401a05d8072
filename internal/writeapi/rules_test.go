package writeapi

import (
	"strings"
	"testing"
)

// A write that is sent again with its key, when its row was removed since, is gone: alone
// and in a batch. A removal stays 204.
func TestReplayedAndGone(t *testing.T) {
	r := newRig(t, "gallery")
	key := []string{"Idempotency-Key", "k"}
	if w := r.do("POST", albums, sea, key...); w.Code != 201 {
		t.Fatal(w.Code, w.Body)
	}
	for range 2 {
		if w := r.do("DELETE", albums+"?id=sea", "", "Idempotency-Key", "d"); w.Code != 204 {
			t.Fatal(w.Code, w.Body)
		}
	}
	w := r.do("POST", albums, sea, key...)
	if w.Code != 410 || w.Header().Get("Idempotent-Replayed") != "true" || !strings.Contains(w.Body.String(), "urn:weir:problem:gone") {
		t.Error(w.Code, w.Header(), w.Body)
	}
	w = r.do("POST", "/v1/gallery/batch", `[{"op":"create","entity":"Album","item":`+sea+`,"idempotencyKey":"k"}]`)
	if w.Code != 200 || !strings.Contains(w.Body.String(), `"status":410,"repeated":true`) {
		t.Error(w.Code, w.Body)
	}
}

// The URL and the body name the row by the same values, character by character.
func TestBodyAndURL(t *testing.T) {
	r := newRig(t, "gallery")
	for _, c := range []struct {
		query, id string
		want      int
	}{{"a%23b", "a#b", 201}, {"a%2523b", "a%23b", 201}, {"a%23b", "a%23b", 422}, {"a%2523b", "a#b", 422}} {
		w := r.do("PUT", albums+"?id="+c.query, `{"id":"`+c.id+`","title":"x","createdAt":"2026-01-31T12:00:00Z"}`)
		if w.Code != c.want {
			t.Errorf("%s %s: %d %s", c.query, c.id, w.Code, w.Body)
		}
	}
}
