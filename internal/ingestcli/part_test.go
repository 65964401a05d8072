package ingestcli

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"weir/internal/cli"
)

// TestPartDone: a service that fails when some commands are done leaves part of them done,
// which is another thing than one that was never there.
func TestPartDone(t *testing.T) {
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		switch {
		case strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".DescribeTable"):
			io.WriteString(w, `{"Table":{"TableStatus":"ACTIVE","TableId":"1"}}`)
		case bytes.Contains(body, []byte("ALBUM#bad")):
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"__type":"com.amazon.coral.service#AccessDeniedException","message":"not you"}`)
		default:
			io.WriteString(w, `{}`)
		}
	}))
	defer fake.Close()
	for name, v := range map[string]string{"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_ENDPOINT_URL_DYNAMODB": fake.URL} {
		t.Setenv(name, v)
	}
	album := func(id string) string {
		return `{"op":"create","entity":"Album","item":{"id":"` + id + `","title":"t","createdAt":"2026-01-31T12:00:00Z"}}` + "\n"
	}
	for _, c := range []struct {
		commands string
		code     int
		says     string
	}{
		{album("bad"), cli.Down, "not you"},
		{album("good") + "a line that is refused, and ends a batch\n" + album("bad"), cli.Part, "part is done; the same command again goes on"},
	} {
		var out, talk bytes.Buffer
		code := run(context.Background(), []string{"put", "gallery", "--aws"}, strings.NewReader(c.commands), &out, &talk)
		if code != c.code || !strings.Contains(talk.String(), c.says) {
			t.Errorf("exit %d, want %d: %s%s", code, c.code, out.String(), talk.String())
		}
	}
}
