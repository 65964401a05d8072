package opensearch

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"weir/internal/doctor"
	"weir/internal/failtest"
)

// TestLook: each answer of the cluster is a fact of its own, and one that is refused names the request.
func TestLook(t *testing.T) {
	const info = `{"version":{"distribution":"opensearch","number":"2.19.1"}}`
	whole := map[string]string{
		"/": info, "/_cluster/health": `{"status":"yellow"}`, "/_scripts/painless/_execute": `{"result":"1"}`,
		"/weir-*/_settings": `{}`, "/_cat/allocation": `[{"disk.percent":"61"},{"disk.percent":"90"},{"disk.percent":null}]`,
	}
	for name, c := range map[string]struct {
		change func(map[string]string)
		want   func(*doctor.Cluster)
	}{
		"whole": {func(map[string]string) {}, func(*doctor.Cluster) {}},
		"blocked": {func(a map[string]string) {
			a["/weir-*/_settings"] = `{"weir-x":{"settings":{"index":{"blocks":{"read_only_allow_delete":"true"}}}}}`
		}, func(c *doctor.Cluster) { c.ReadOnly.Is = true }},
		"no scripts": {func(a map[string]string) {
			a["/_scripts/painless/_execute"] = `400{"error":{"type":"illegal_argument_exception","reason":"cannot execute [inline] scripts"}}`
		}, func(c *doctor.Cluster) { c.Scripts.Is = "cannot execute [inline] scripts" }},
		"nothing allowed": {func(a map[string]string) {
			for path := range a {
				if path != "/" {
					a[path] = `403{"error":{"type":"security_exception","reason":"no permissions"}}`
				}
			}
		}, func(c *doctor.Cluster) {
			c.Health, c.Scripts = doctor.Not[string]("the permission for GET _cluster/health"), doctor.Not[string]("the permission for POST _scripts/painless/_execute")
			c.ReadOnly, c.Free = doctor.Not[bool]("the permission for GET weir-*/_settings"), doctor.Not[int]("the permission for GET _cat/allocation")
		}},
		"a disk that is not said": {func(a map[string]string) { a["/_cat/allocation"] = `[]` }, func(c *doctor.Cluster) {
			c.Free = doctor.Not[int]("a cluster that says how full its disks are")
		}},
		"another product": {func(a map[string]string) { a["/"] = `{"version":{"number":"7.10.2"}}` }, func(c *doctor.Cluster) {
			c.Distribution, c.Version = "", "7.10.2"
		}},
	} {
		t.Run(name, func(t *testing.T) {
			answers := map[string]string{}
			for path, body := range whole {
				answers[path] = body
			}
			c.change(answers)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body := answers[r.URL.Path]
				w.Header().Set("Content-Type", "application/json")
				if rest, ok := strings.CutPrefix(body, "400"); ok {
					w.WriteHeader(http.StatusBadRequest)
					body = rest
				} else if rest, ok := strings.CutPrefix(body, "403"); ok {
					w.WriteHeader(http.StatusForbidden)
					body = rest
				}
				w.Write([]byte(body))
			}))
			defer server.Close()
			want := doctor.Cluster{URL: server.URL, Distribution: "opensearch", Version: "2.19.1", Health: doctor.Known("yellow"), Scripts: doctor.Known(""), ReadOnly: doctor.Known(false), Free: doctor.Known(10)}
			c.want(&want)
			got, err := Look(t.Context(), server.URL)
			failtest.On(t, err)
			if got.Health != want.Health || got.Scripts != want.Scripts || got.ReadOnly != want.ReadOnly || got.Free != want.Free ||
				got.Distribution != want.Distribution || got.Version != want.Version || got.URL != want.URL || got.Down != "" {
				t.Errorf("%+v\n%+v", got, want)
			}
		})
	}
	if got, err := Look(t.Context(), "http://127.0.0.1:1"); err != nil || got.Down == "" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := Look(t.Context(), "ftp://x"); err == nil {
		t.Error("no error for a URL that is none")
	}
}

// TestHoldsFailedShard: a shard that does not answer is an error, and no missing document.
func TestHoldsFailedShard(t *testing.T) {
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Write([]byte(`{"docs":[{"_id":"a","error":{"type":"security_exception","reason":"no permissions for [indices:data/read/mget[shard]]"}}]}`))
	}))
	defer fake.Close()
	srv, err := newClient(t.Context(), Target{URL: fake.URL}, time.Minute)
	failtest.On(t, err)
	ix := scripted(t, &script{}, time.Minute)
	ix.server = srv
	if has, err := ix.Holds(t.Context(), testDocs("a")); err == nil || !strings.Contains(err.Error(), "no permissions for") {
		t.Error(has, err)
	}
}
