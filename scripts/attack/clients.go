package main

import (
	"fmt"
	"net/http"
	"strings"

	"weir/internal/web/webtest"
)

const (
	keyA = "attack-key-aaaaaaaaaaaa"
	keyB = "attack-key-bbbbbbbbbbbb"
)

// attackKeys sends every request with every kind of missing or wrong key. Only health may answer,
// and nothing may be written.
func (a *attack) attackKeys() (string, error) {
	asked := 0
	for _, program := range []string{"ingest serve", "run"} {
		s, err := a.startServer(1024, []string{"WEIR_KEYS=" + keyA + "," + keyB}, append(strings.Fields(program), "gallery")...)
		if err != nil {
			return "", err
		}
		defer s.killServer()
		root := "http://" + s.addr
		for _, path := range []string{"/v1", "/v1/gallery", "/v1/gallery/Album?id=a", "/v1/gallery/batch", "/v1/gallery/albums", "/metrics", "/openapi.json", "/", "//healthz", "/healthz/", "/healthz/../v1", "/HEALTHZ", "/%68ealthz/x"} {
			for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW"} {
				for _, key := range []string{"", "Bearer", "Bearer ", "Bearer " + keyA[:22], "Bearer " + keyA + "x", "Bearer " + keyA + "," + keyB, "Basic " + keyA, keyA, "Bearer\t" + keyA, "Bearer " + strings.ToUpper(keyA)} {
					var headers []string
					if key != "" {
						headers = append(headers, "Authorization: "+key)
					}
					asked++
					status, body, err := sendRequest(method, root+path, "", headers...)
					if err != nil {
						return "", err
					}
					if status != http.StatusUnauthorized && status != http.StatusTemporaryRedirect && status != http.StatusMovedPermanently {
						return "", fmt.Errorf("%s %s %s with %q: %d %.100s", program, method, path, key, status, body)
					}
				}
			}
		}
		if status, _, err := sendRequest("GET", root+"/healthz", ""); err != nil || status != 200 {
			return "", fmt.Errorf("health: %d %v", status, err)
		}
		if status, _, err := sendRequest("GET", root+"/v1/gallery/Album?id=a", "", "Authorization: Bearer "+keyB); err != nil || status == http.StatusUnauthorized {
			return "", fmt.Errorf("a good key: %d %v", status, err)
		}
		if err := s.stopServer(); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%d requests without a key were refused", asked), nil
}

// attackBodies sends bodies that are not commands. Every answer must be a client error (4xx), and
// the server must go on.
func (a *attack) attackBodies() (string, error) {
	s, err := a.startServer(1024, nil, "ingest", "serve", "gallery")
	if err != nil {
		return "", err
	}
	defer s.killServer()
	hostile := []string{
		"{", "[]", "null", "1", `"x"`, "{}", "\x00", "\xff\xfe", "\xef\xbb\xbf{}", "{\"id\": 1e999999}", `{"id": "a", "id": "b"}`,
		strings.Repeat("[", 200000), strings.Repeat(`{"a":`, 50000), `{"id": "` + strings.Repeat("x", 1<<20) + `"}`, `{"id": "` + strings.Repeat("x", 900000) + `"}`,
		albumCommand(strings.Repeat("é", 2000), "x"), albumCommand("", "x"), `{"id": "a", "title": "\ud800", "createdAt": "2026-01-31T12:00:00Z"}`,
		`{"id": "a", "title": "x", "createdAt": "` + strings.Repeat("9", 150000) + `"}`, `{"__proto__": {}, "weir": 1, "PK": "x"}`,
	}
	sent := 0
	for round := range a.shortOrFull(40, 4) {
		for _, body := range hostile {
			if round > 0 && len(body) > 0 { // and cut anywhere, or with a byte changed
				b := []byte(body)[:1+a.rng.IntN(len(body))]
				b[a.rng.IntN(len(b))] = byte(a.rng.Uint32())
				body = string(b)
			}
			for _, to := range []string{"Album", "batch"} {
				status, answer, err := sendRequest("POST", s.base+to, body)
				if err != nil {
					return "", fmt.Errorf("after %d bodies, %.60q: %w", sent, body, err)
				}
				// A randomly changed body may be a command, and a batch answers for each command.
				if sent++; status >= 500 || status < 400 && round == 0 && to == "Album" {
					return "", fmt.Errorf("%s takes %.60q: %d %.200s", to, body, status, answer)
				}
			}
		}
	}
	if status, answer, err := sendRequest("POST", s.base+"Album", albumCommand("good", "good")); err != nil || status != 201 {
		return "", fmt.Errorf("a good one after all: %d %s %v", status, answer, err)
	}
	return fmt.Sprintf("%d hostile bodies stopped nothing", sent), s.stopServer()
}

// attackConnections holds more silent connections than the process may have open files. Writes and queries
// must go on meanwhile.
func (a *attack) attackConnections() (string, error) {
	const files = 320
	s, err := a.startServer(files, nil, "dev", "gallery")
	if err != nil {
		return "", err
	}
	defer s.killServer()
	written := 0
	for range a.shortOrFull(20, 2) {
		stop, err := webtest.Idle(s.addr, files+80)
		if err != nil {
			return "", err
		}
		defer stop()
		for range 50 {
			if status, answer, err := sendRequest("POST", s.base+"Album", albumCommand(fmt.Sprint("idle", written), strings.Repeat("x", 20000))); err != nil || status != 201 {
				return "", fmt.Errorf("write %d: %d %.200s %v", written, status, answer, err)
			}
			written++
		}
		client.CloseIdleConnections()
	}
	if status, answer, err := sendRequest("GET", s.base+"album?albumId=idle7", ""); err != nil || status != 200 {
		return "", fmt.Errorf("a query: %d %.200s %v", status, answer, err)
	}
	return fmt.Sprintf("%d writes beside %d silent connections", written, files+80), s.stopServer()
}
