package opensearch

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"weir/internal/failtest"
	"weir/internal/search"
	"weir/internal/search/opensearch/opensearchtest"
)

// TestRole: what a role document has, in the places where the plugin looks for it.
func TestRole(t *testing.T) {
	var role struct {
		Cluster []string `json:"cluster_permissions"`
		Indexes []struct {
			Patterns []string `json:"index_patterns"`
			Actions  []string `json:"allowed_actions"`
		} `json:"index_permissions"`
	}
	failtest.On(t, json.Unmarshal(Role("prod-", false), &role))
	want := []string{"cluster:monitor/main", "indices:data/read/mget", "indices:data/read/scroll", "indices:data/read/scroll/clear", "indices:data/write/bulk"}
	if !slices.Equal(role.Cluster, want) || len(role.Indexes) != 1 || !slices.Equal(role.Indexes[0].Patterns, []string{"weir-prod-*"}) {
		t.Errorf("%+v", role)
	}
	for _, a := range role.Indexes[0].Actions {
		if strings.HasPrefix(a, "cluster:") || strings.Contains(a, "*") {
			t.Errorf("the indexes allow %s", a)
		}
	}
	if with := string(Role("", true)); !strings.Contains(with, "cluster:monitor/health") || strings.Contains(string(Role("", false)), "health") {
		t.Error(with)
	}
}

// recordedCalls are the requests that a cluster has got, with {index} for names.
type recordedCalls struct {
	mu  sync.Mutex
	has map[string]bool
}

var namesIndex = regexp.MustCompile(`/weir-[^/]*`)

// record is a proxy for a cluster that notes each request.
func record(t *testing.T, cluster string) (*recordedCalls, string) {
	at, err := url.Parse(cluster)
	failtest.On(t, err)
	r, proxy := &recordedCalls{has: map[string]bool{}}, httputil.NewSingleHostReverseProxy(at)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		r.has[req.Method+" "+namesIndex.ReplaceAllString(req.URL.Path, "/{index}")] = true
		r.mu.Unlock()
		proxy.ServeHTTP(w, req)
	}))
	t.Cleanup(server.Close)
	to, err := url.Parse(server.URL)
	failtest.On(t, err)
	to.User = at.User
	return r, to.String()
}

// TestRoleOnServices: each request that a cluster gets is one of those from which the role is made, and the other way round;
// and the cluster carries out each of their actions. It logs them; where its log is not on this machine, only requests are compared.
func TestRoleOnServices(t *testing.T) {
	cluster := opensearchtest.URL(t)
	got, at := record(t, cluster)
	log := actionsOf(t, cluster)
	did := map[string]string{} // what the log had behind each step
	step := func(requests string, do func() error) {
		t.Helper()
		from := log.length()
		failtest.On(t, do())
		did[requests] = log.since(from)
	}
	var ix *Index
	docs := []search.Document{{Index: "things", ID: "a", Text: []string{"x"}}, {Index: "things", ID: "b", Deleted: true}}
	step("HEAD /, GET /{index}/_mapping, PUT /{index}", func() (err error) {
		ix, err = Open(t.Context(), at, []search.Schema{{Name: "things"}}, Options{Source: t.Name() + fmt.Sprint(time.Now().UnixNano())})
		return err
	})
	step("POST /{index}/_bulk", func() error { errs, err := ix.Apply(t.Context(), docs); return errors.Join(append(errs, err)...) })
	step("POST /{index}/_refresh", func() error { return ix.Refresh(t.Context()) })
	step("POST /{index}/_mget", func() error {
		has, err := ix.Holds(t.Context(), docs[:1])
		if err == nil && !has[0] {
			t.Error("the cluster has no document that it took")
		}
		return err
	})
	step("POST /{index}/_search", func() error { _, err := ix.Search(t.Context(), search.Query{Index: "things", Limit: 10}); return err })
	sp := ix.spaces["things"]
	step("POST /{index}/_delete_by_query", func() error {
		sp.nextPrune = time.Time{}
		return ix.server.pruneTombstones(t.Context(), sp, time.Now().Add(2*keepTombstones))
	})
	step("GET /, GET /_cluster/health, POST /_scripts/painless/_execute, GET /{index}/_settings, GET /_cat/allocation", func() error {
		_, err := Look(t.Context(), at)
		return err
	})
	step("DELETE /{index}", func() error { return ix.server.dropIndex(t.Context(), sp) })
	failtest.On(t, ix.Close())

	listed := map[string]bool{}
	for _, c := range calls {
		listed[c.request] = true
		for requests, said := range did {
			if log.path == "" || !slices.Contains(strings.Split(requests, ", "), c.request) {
				continue
			}
			for _, a := range c.actions {
				// The plugin tells these by what is in a request of another action.
				inside := slices.Contains([]string{"indices:admin/aliases", "indices:data/write/update", "indices:data/write/delete"}, a)
				if !inside && !strings.Contains(said, "] ["+a+"] ") {
					t.Errorf("%s does not %s", c.request, a)
				}
			}
		}
	}
	if !maps.Equal(listed, got.has) {
		t.Errorf("the role is for\n%q, and the cluster got\n%q", slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(got.has)))
	}
}

// actionLog is the log of a cluster, which says each action that it carries out.
type actionLog struct {
	*testing.T
	path string // "" if it is not on this machine
}

// actionsOf makes a cluster log its actions until the test ends.
func actionsOf(t *testing.T, cluster string) *actionLog {
	level := func(is string) {
		r, err := http.NewRequest(http.MethodPut, cluster+"/_cluster/settings", strings.NewReader(`{"transient": {"logger.org.opensearch.tasks.TaskManager": `+is+`}}`))
		failtest.On(t, err)
		r.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(r)
		failtest.On(t, err)
		res.Body.Close()
	}
	level(`"TRACE"`)
	t.Cleanup(func() { level("null") })
	res, err := http.Get(cluster + "/_nodes/settings")
	failtest.On(t, err)
	defer res.Body.Close()
	var all struct {
		Cluster string `json:"cluster_name"`
		Nodes   map[string]struct {
			Settings struct{ Path struct{ Logs string } }
		}
	}
	failtest.On(t, json.NewDecoder(res.Body).Decode(&all))
	for _, n := range all.Nodes {
		path := filepath.Join(n.Settings.Path.Logs, all.Cluster+".log")
		if _, err := os.Stat(path); err == nil {
			return &actionLog{t, path}
		}
	}
	return &actionLog{T: t}
}

func (l *actionLog) length() int {
	if l.path == "" {
		return 0
	}
	is, err := os.Stat(l.path)
	failtest.On(l, err)
	return int(is.Size())
}

func (l *actionLog) since(from int) string {
	if l.path == "" {
		return ""
	}
	text, err := os.ReadFile(l.path)
	failtest.On(l, err)
	return string(text[from:])
}
